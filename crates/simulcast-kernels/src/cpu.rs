//! The processor: instruction-set levels, cache sizes, non-temporal stores, software prefetch, aligned buffers.

pub mod aligned_buf;
pub mod cache;
pub mod level;
pub mod nontemporal;
pub mod prefetch;

/// One leaf of the processor's description of itself.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unused_unsafe, reason = "needed by the oldest compiler that is supported")]
fn cpuid(leaf: u32, subleaf: u32) -> std::arch::x86_64::CpuidResult {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::__cpuid_count(leaf, subleaf) }
}
