//! Tables: the loops of a body for every pattern and level, compiled once for each that needs loops of its own.
//!
//! The invariant is that of [`super`].

use super::{Body, Kernel, Loops, Past, Weight};
use crate::compiled_for_levels;
use crate::cpu::level::Level;
#[cfg(target_arch = "x86_64")]
use crate::cpu::nontemporal::Strip;
#[cfg(target_arch = "x86_64")]
use crate::ops::loops::past;
use crate::ops::loops::{light, stepped, steps, tiles};

/// The loops of one shim, one a pattern: of an operation with so many operands.
macro_rules! patterns {
    ($arity:expr, $shim:ident<$($type:ty),+ $(; $vectors:tt)?> as $Kernel:ident) => {
        const {
            match $arity {
                1 => &[$shim::<$($type,)+ 0 $(, $vectors)?> as $Kernel] as &[$Kernel],
                2 => &[
                    $shim::<$($type,)+ 0 $(, $vectors)?>,
                    $shim::<$($type,)+ 1 $(, $vectors)?>,
                    $shim::<$($type,)+ 2 $(, $vectors)?>,
                ],
                _ => &[
                    $shim::<$($type,)+ 0 $(, $vectors)?>,
                    $shim::<$($type,)+ 1 $(, $vectors)?>,
                    $shim::<$($type,)+ 2 $(, $vectors)?>,
                    $shim::<$($type,)+ 3 $(, $vectors)?>,
                    $shim::<$($type,)+ 4 $(, $vectors)?>,
                    $shim::<$($type,)+ 5 $(, $vectors)?>,
                    $shim::<$($type,)+ 6 $(, $vectors)?>,
                ],
            }
        }
    };
}

pub(crate) use patterns;

/// Loops of every level that there is on this processor.
macro_rules! each_level {
    ($Kernel:ident: $baseline:expr, $avx2:expr, $avx512:expr) => {
        [
            $baseline as &[$Kernel],
            #[cfg(target_arch = "x86_64")]
            $avx2,
            #[cfg(target_arch = "x86_64")]
            $avx512,
        ]
    };
}

/// The loops of a body. What is not worth loops of its own for results that go past the caches has none: those go there
/// from the tile that they are made in.
pub(crate) fn table<B: Body>(level: Level) -> Loops {
    let light = matches!(B::WEIGHT, Weight::Light | Weight::Busy);
    let past = const {
        match B::WEIGHT {
            Weight::Light | Weight::Busy => each_level!(
                Past: &[],
                patterns!(B::ARITY, past_avx2<B> as Past),
                patterns!(B::ARITY, past_avx2<B> as Past)
            ),
            Weight::Tiled | Weight::Heavy => [&[] as &[Past]; Level::COUNT],
        }
    };
    Loops { each: staying::<B>(level), past: past[level.number()], slow: !light }
}

/// The loops of a body whose results stay in the caches. They are chosen by its weight in a constant: those of other
/// weights would be compiled too, and thrown away.
pub(crate) fn staying<B: Body>(level: Level) -> &'static [Kernel] {
    let loops = const {
        match B::WEIGHT {
            Weight::Light | Weight::Busy => each_level!(
                Kernel: patterns!(B::ARITY, light<B; false> as Kernel),
                patterns!(B::ARITY, light_avx2<B> as Kernel),
                patterns!(B::ARITY, light_avx2<B> as Kernel)
            ),
            Weight::Tiled => each_level!(
                Kernel: patterns!(B::ARITY, tiled_baseline<B> as Kernel),
                patterns!(B::ARITY, tiled_avx2<B> as Kernel),
                patterns!(B::ARITY, tiled_avx512<B> as Kernel)
            ),
            Weight::Heavy => [patterns!(B::ARITY, heavy<B> as Kernel); Level::COUNT],
        }
    };
    loops[level.number()]
}

compiled_for_levels! {
    /// [`light`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn light_avx2<B: Body, const PATTERN: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { light::<B, PATTERN, true>(out, ins, len) }
    }
}

compiled_for_levels! {
    /// [`past`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn past_avx2<B: Body, const PATTERN: usize>(
        out: *mut u8,
        ins: [*const u8; 3],
        len: usize,
        strip: &Strip,
    ) {
        // SAFETY: the caller keeps the invariant.
        unsafe { past::<B, PATTERN>(out, ins, len, strip) }
    }
}

compiled_for_levels! {
    /// [`tiles`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    #[inline(never)]
    unsafe fn tiles_avx2, tiles_avx512<B: Body>(
        out: *mut u8,
        ins: [*const u8; 3],
        steps: [usize; 3],
        len: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { tiles::<B, true>(out, ins, steps, len) }
    }
}

/// [`tiles`], compiled for every machine.
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn tiles_baseline<B: Body>(
    out: *mut u8,
    ins: [*const u8; 3],
    steps: [usize; 3],
    len: usize,
) {
    // SAFETY: the caller keeps the conditions.
    unsafe { tiles::<B, false>(out, ins, steps, len) }
}

/// Writes the loops of a tiled or heavy body for one pattern.
macro_rules! by_pattern {
    ($($name:ident = $every:ident;)*) => { $(
        /// # Safety
        ///
        /// The invariant of this module, and the machine has the features.
        unsafe fn $name<B: Body, const PATTERN: usize>(
            out: *mut u8,
            ins: [*const u8; 3],
            len: usize,
        ) {
            // SAFETY: the caller keeps the invariant; what is repeated stays where it is.
            unsafe { $every::<B>(out, ins, steps(PATTERN), len) }
        }
    )* };
}

by_pattern! {
    heavy = stepped;
    tiled_baseline = tiles_baseline;
}

#[cfg(target_arch = "x86_64")]
by_pattern! {
    tiled_avx2 = tiles_avx2;
    tiled_avx512 = tiles_avx512;
}
