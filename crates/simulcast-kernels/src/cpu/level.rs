//! Instruction-set levels: the same plain loops, compiled once for each.
//!
//! | calls | default level |
//! |---|---|
//! | closures, copies, sums ([`Level::for_closures`]) | AVX2: most of their loops are bound by memory, where AVX-512 measured ahead in some and behind in others |
//! | programs ([`Level::for_programs`]) | the widest: elementary functions are bound by instructions |
//!
//! `SIMULCAST_LEVEL` (`baseline`, `avx2`, `avx512`) sets another for both; a level that the machine does not have is ignored, since
//! programs are moved between machines. A value of [`Level`] is the proof that the machine can run it. Additions, products and
//! the like are bit-equal at every level: nothing is reordered, and what is fused (`fma`, elementary functions) says so.

use std::sync::OnceLock;

// Implements E_BROADCAST_ANY_FUNC_3050.
/// An instruction-set level that this machine can run.
///
/// ```
/// # extern crate simulcast_kernels as simulcast;
/// use simulcast::Level;
///
/// assert!(Level::available().contains(&Level::for_closures()));
/// assert_eq!(Level::BASELINE.name(), "baseline");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level(Kind);

/// The levels of the target, as a `match` dispatches on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Whether the machine has all of these features.
#[cfg(target_arch = "x86_64")]
macro_rules! all {
    ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
}

/// A function, compiled for AVX2, and for AVX-512 too if a second name is given.
///
/// Only callees that are inlined into it are compiled for the level. It is unsafe because the machine must have the
/// instructions: a [`Level`] proves that.
#[macro_export]
macro_rules! compiled_for_levels {
    ($(#[$attribute:meta])* $vis:vis unsafe fn $avx2:ident, $avx512:ident $($rest:tt)*) => {
        $crate::compiled_for_levels! { $(#[$attribute])* $vis unsafe fn $avx2 $($rest)* }
        $crate::compiled_for_levels! {
            $(#[$attribute])*
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            $vis unsafe fn $avx512 $($rest)*
        }
    };
    ($(#[$attribute:meta])* $vis:vis unsafe fn $avx2:ident $($rest:tt)*) => {
        $(#[$attribute])*
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,movbe")]
        $vis unsafe fn $avx2 $($rest)*
    };
}

impl Level {
    /// The instructions that every machine of the target has (SSE2 on `x86_64`, NEON on `aarch64`).
    pub const BASELINE: Self = Self(Kind::Baseline);

    /// AVX2 with FMA and F16C, if the machine has them.
    #[must_use]
    pub fn avx2() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            // Every feature that `compiled_for_levels!` enables: none of the small ones is implied by AVX2.
            if all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt" "movbe") {
                return Some(Self(Kind::Avx2));
            }
        }
        None
    }

    /// AVX-512 with its instructions for bytes, words and short vectors, if the machine has them.
    #[must_use]
    pub fn avx512() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if Self::avx2().is_some() && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl") {
            return Some(Self(Kind::Avx512));
        }
        None
    }

    /// Every level of this machine, from the narrowest vectors to the widest.
    #[must_use]
    pub fn available() -> Vec<Self> {
        [Some(Self::BASELINE), Self::avx2(), Self::avx512()].into_iter().flatten().collect()
    }

    /// The level of closures, copies and sums: the one that `SIMULCAST_LEVEL` names, else AVX2, else the baseline. Not
    /// always the widest: such loops wait for memory, and AVX-512 measured ahead in some and behind in others.
    #[must_use]
    #[inline]
    pub fn for_closures() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| Self::named().or_else(Self::avx2).unwrap_or(Self::BASELINE))
    }

    /// The level of programs: the one that `SIMULCAST_LEVEL` names, else the widest.
    #[must_use]
    pub fn for_programs() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            Self::named().or_else(|| Self::available().pop()).unwrap_or(Self::BASELINE)
        })
    }

    /// The level that `SIMULCAST_LEVEL` names, if it is set and the machine has the level.
    fn named() -> Option<Self> {
        Self::of_name(&std::env::var("SIMULCAST_LEVEL").ok()?)
    }

    /// The names of all levels, those of other machines too.
    pub const NAMES: &'static [&'static str] = &["baseline", "avx2", "avx512"];

    /// The level of that name, if the machine has it.
    fn of_name(name: &str) -> Option<Self> {
        Self::available().into_iter().find(|level| level.name() == name)
    }

    /// The name that `SIMULCAST_LEVEL` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// The number of levels of the target.
    pub const COUNT: usize = if cfg!(target_arch = "x86_64") { 3 } else { 1 };

    /// Its index, from the narrowest vectors to the widest, below [`COUNT`](Self::COUNT).
    #[inline(always)]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    #[inline(always)]
    pub const fn kind(self) -> Kind {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn a_level_is_known_by_its_name_alone() {
        for level in Level::available() {
            assert_eq!(Level::of_name(level.name()), Some(level));
            assert!(Level::NAMES.contains(&level.name()));
        }
        for name in ["", "AVX2", "sse9"] {
            assert_eq!(Level::of_name(name), None, "{name:?}");
        }
    }
}
