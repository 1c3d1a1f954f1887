//! The loop of a body at each level: one function a body and a level, or fewer where levels share it.
//!
//! ```text
//! weight   baseline          AVX2       AVX-512
//! light    stepped           chunked    that of AVX2
//! fused    stepped           tiled      tiled
//! tiled    stepped           tiled      tiled
//! heavy    stepped           stepped    stepped
//! ```
//!
//! The baseline of `x86-64` is small code for machines without AVX2, and so is that of WebAssembly, whose modules are
//! downloaded; elsewhere it is the only level, and vectorised.
//! The invariant is that of [`super`].

#[cfg(target_arch = "x86_64")]
use super::NonTemporalKernel;
use super::loops::{chunked, stepped, tiled};
use super::{ElementOp, Kernel, Kernels, Weight};
use crate::compiled_for_levels;
use crate::cpu::level::Level;
#[cfg(target_arch = "x86_64")]
use crate::ops::loops::nontemporal;

/// Whether the baseline is a loop over single elements. Miri has no other level, and checks the vectorised loops.
const STEPPED_BASELINE: bool =
    cfg!(all(any(target_arch = "x86_64", target_family = "wasm"), not(miri)));

/// One entry for every level that there is on this processor.
macro_rules! each_level {
    ($baseline:expr, $avx2:expr, $avx512:expr) => {
        [
            $baseline,
            #[cfg(target_arch = "x86_64")]
            $avx2,
            #[cfg(target_arch = "x86_64")]
            $avx512,
        ]
    };
}

/// The kernels of a body.
pub(crate) fn kernels_of<O: ElementOp>(level: Level) -> Kernels {
    let nontemporal = const {
        match O::WEIGHT {
            Weight::Light | Weight::Busy => each_level!(
                None,
                Some(nontemporal_avx2::<O> as NonTemporalKernel),
                Some(nontemporal_avx2::<O> as NonTemporalKernel)
            ),
            Weight::Fused | Weight::Tiled | Weight::Heavy => [None; Level::COUNT],
        }
    };
    Kernels {
        cached: kernel_of::<O>(level),
        nontemporal: nontemporal[level.number()],
        compute_bound: matches!(O::WEIGHT, Weight::Tiled | Weight::Heavy),
        prefetches: matches!(O::WEIGHT, Weight::Busy),
    }
}

/// The kernel of a body. It is chosen by weight in a constant: the loops of other weights are not compiled.
pub(crate) fn kernel_of<O: ElementOp>(level: Level) -> Kernel {
    let kernels: [Kernel; Level::COUNT] = const {
        match O::WEIGHT {
            Weight::Heavy => [stepped::<O> as Kernel; Level::COUNT],
            Weight::Light | Weight::Busy if STEPPED_BASELINE => {
                each_level!(stepped::<O>, chunked_avx2::<O>, chunked_avx2::<O>)
            }
            Weight::Light | Weight::Busy => {
                each_level!(chunked::<O>, chunked_avx2::<O>, chunked_avx2::<O>)
            }
            Weight::Fused | Weight::Tiled if STEPPED_BASELINE => {
                each_level!(stepped::<O>, tiled_avx2::<O>, tiled_avx512::<O>)
            }
            Weight::Fused | Weight::Tiled => {
                each_level!(tiled::<O, false>, tiled_avx2::<O>, tiled_avx512::<O>)
            }
        }
    };
    kernels[level.number()]
}

compiled_for_levels! {
    /// [`chunked`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn chunked_avx2<O: ElementOp>(
        out: *mut u8,
        ins: &[*const u8; 3],
        repeated: usize,
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { chunked::<O>(out, ins, repeated, len) }
    }
}

compiled_for_levels! {
    /// [`nontemporal`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn nontemporal_avx2<O: ElementOp>(
        out: *mut u8,
        ins: &[*const u8; 3],
        repeated: usize,
        len: usize,
        far: Option<usize>,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { nontemporal::<O>(out, ins, repeated, len, far) }
    }
}

compiled_for_levels! {
    /// [`tiled`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn tiled_avx2, tiled_avx512<O: ElementOp>(
        out: *mut u8,
        ins: &[*const u8; 3],
        repeated: usize,
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { tiled::<O, true>(out, ins, repeated, len) }
    }
}
