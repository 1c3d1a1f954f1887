//! The core without an allocator and without an operating system: (2, 3, 4) plus a column, (3, 1), through strides alone.
//!
//! `cargo xtask bare` runs it on an ARM Cortex-M's instruction set, under qemu's user mode; on this machine it is
//! `cargo run -p simulcast-core --example bare`.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![allow(clippy::print_stdout, reason = "an example")]

use simulcast_core::{Refusal, Rule, offsets, strides_into};

/// The sum of all elements of `a + b`, each element of both read where it is stored.
fn sum() -> Result<i32, Refusal> {
    let (a, b): ([i32; 24], [i32; 3]) = (core::array::from_fn(|n| n as i32), [100, 200, 300]);
    let shapes = [&[2, 3, 4][..], &[3, 1]];

    let (mut shape, mut of_a, mut of_b) = ([0; 3], [0; 3], [0; 3]);
    strides_into(Rule::Numpy, &shapes, 0, None, &mut shape, &mut of_a)?;
    let shape = strides_into(Rule::Numpy, &shapes, 1, None, &mut shape, &mut of_b)?;

    let mut sum = 0;
    for [at_a, at_b] in offsets(shape, [&of_a, &of_b])? {
        sum += a[at_a as usize] + b[at_b as usize];
    }
    Ok(sum)
}

/// What it comes to: 0 + 1 + … + 23, and each of the column eight times.
const EXPECTED: Result<i32, Refusal> = Ok(276 + 8 * 600);

#[cfg(not(target_os = "none"))]
fn main() {
    assert_eq!(sum(), EXPECTED);
    println!("the sum is {:?}", sum());
}

/// What an operating system would do for the program: start it, and end it. Under qemu's user mode that is Linux's.
#[cfg(target_os = "none")]
mod bare {
    use core::arch::asm;

    fn exit(code: i32) -> ! {
        // SAFETY: system call 1 ends the process.
        unsafe { asm!("mov r7, #1", "svc 0", in("r0") code, options(noreturn)) }
    }

    #[unsafe(no_mangle)]
    extern "C" fn _start() -> ! {
        exit(if super::sum() == super::EXPECTED { 0 } else { 1 })
    }

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        exit(101)
    }
}
