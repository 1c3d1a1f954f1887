//! Instruction-set levels: the same plain loops, compiled once for each.
//!
//! AVX2 is used where the machine has it; the environment variable `SIMULCAST_LEVEL` (`baseline`,
//! `avx2`, `avx512`) asks for another, so that a test proves which path ran. AVX-512 waits to be
//! asked in zips, copies and sums: most of their loops wait for memory, and on the machine that was
//! measured it was ahead in some and behind in others. Programs use it, since their functions take
//! more instructions. A value of [`Level`] is the proof that the machine can run it. Additions,
//! products and the like are bit-equal at every level: nothing is fused or reordered.

use std::sync::OnceLock;

// Implements E_BROADCAST_ANY_FUNC_3050.
/// A level that this machine can run.
///
/// ```
/// # extern crate simulcast_kernels as simulcast;
/// use simulcast::Level;
///
/// assert!(Level::available().contains(&Level::best()));
/// assert_eq!(Level::BASELINE.name(), "baseline");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level(Kind);

/// What there is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Whether the machine has every one of these features.
#[cfg(target_arch = "x86_64")]
macro_rules! all {
    ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
}

/// A function, compiled for AVX2, and for AVX-512 too where it is given a name for that.
///
/// What it calls is inlined into it, or does not get the level's instructions; it is unsafe because
/// the machine must have them.
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
    /// What every machine of the target has (SSE2 on `x86_64`, NEON on `aarch64`).
    pub const BASELINE: Self = Self(Kind::Baseline);

    /// AVX2 with FMA and F16C, where the machine has them.
    #[must_use]
    pub fn avx2() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            // Every feature that the shims enable, since none of the small ones follows from AVX2.
            if all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt" "movbe") {
                return Some(Self(Kind::Avx2));
            }
        }
        None
    }

    /// AVX-512 with its instructions for bytes, words and short vectors, where the machine has them.
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

    /// The level that is used unless a call says otherwise: what `SIMULCAST_LEVEL` names, or AVX2,
    /// or what there is.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::wanted(std::env::var("SIMULCAST_LEVEL").ok().as_deref()))
    }

    /// The level of programs, whose functions take more instructions than memory takes time: what
    /// `SIMULCAST_LEVEL` names, or the one with the widest vectors.
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Level> = OnceLock::new();
        *WIDEST.get_or_init(|| {
            let named = std::env::var("SIMULCAST_LEVEL").ok();
            let mut levels = Self::available();
            let last = levels.pop().unwrap_or(Self::BASELINE);
            levels.into_iter().find(|level| named.as_deref() == Some(level.name())).unwrap_or(last)
        })
    }

    /// Whether whole lines are turned over in vectors of AVX-512. At the usual level that waits for no one to ask: what
    /// only moves is the same at every level, and faster so.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn turns_lines(self) -> bool {
        let widest = if self == Self::best() { Self::widest() } else { self };
        widest.0 == Kind::Avx512
    }

    /// The level of that name, or the usual one where there is none of that name here.
    fn wanted(name: Option<&str>) -> Self {
        let named = Self::available().into_iter().find(|level| Some(level.name()) == name);
        named.or_else(Self::avx2).unwrap_or(Self::BASELINE)
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

    /// How many there may be.
    pub const COUNT: usize = if cfg!(target_arch = "x86_64") { 3 } else { 1 };

    /// Its number, from the narrowest vectors to the widest.
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
    fn a_name_chooses_the_level_and_nothing_else_does() {
        for level in Level::available() {
            assert_eq!(Level::wanted(Some(level.name())), level);
        }
        let usual = Level::avx2().unwrap_or(Level::BASELINE);
        for name in [None, Some(""), Some("AVX2"), Some("sse9")] {
            assert_eq!(Level::wanted(name), usual, "{name:?}");
        }
    }
}
