//! The error function.
//!
//! ```text
//! |x| < 0.9    erf x = x + x Q(x²)
//! beyond       erf x = ± (1 - erfc |x|), up to where it is 1
//!     f32      erfc a = e^P(a)
//!     f64      erfc a = e^-a² P((a - 3) / (a + 3)): another variable, since the degree would double
//! ```
//!
//! Both are computed and one is chosen. Beyond 0.9 erfc is below 0.21, so that few of its roundings
//! are left in the difference.

use crate::math::exp::{Exponential, grown, reduced};
use crate::math::lane::{polynomial, split};

/// The polynomials of a type, by the Remez exchange.
pub(super) trait Error: Exponential {
    const Q: &'static [Self];

    /// `erfc a` for `a` of at least 0.9, good to an ULP of 1.
    fn complement<const FMA: bool>(a: Self) -> Self;
}

/// `e^x` for results that are normal numbers.
#[inline(always)]
fn exp<T: Exponential, const FMA: bool>(x: T) -> T {
    let (sum, r) = reduced::<T, FMA>(x, T::MAGIC + T::BIAS);
    grown::<T, FMA>(r) * sum.power()
}

impl Error for f32 {
    const Q: &'static [Self] = &[
        0.128_379_15,
        -0.376_125_22,
        0.112_821_28,
        -0.026_778_428,
        0.005_011_210_7,
        -0.000_608_628_1,
    ];

    #[inline(always)]
    fn complement<const FMA: bool>(a: Self) -> Self {
        const P: [f32; 7] = [
            -0.000_177_539_78,
            -1.127_749_3,
            -0.637_060_1,
            -0.104_037_024,
            0.022_276_912,
            -0.003_055_560_4,
            0.000_197_176_57,
        ];
        let a = if a > 4.0 { 4.0 } else { a };
        exp::<Self, FMA>(split::<Self, FMA>(a, &P))
    }
}

impl Error for f64 {
    const Q: &'static [Self] = &[
        0.128_379_167_095_512_6,
        -0.376_126_389_031_837_26,
        0.112_837_916_709_536_76,
        -0.026_866_170_644_800_937,
        0.005_223_977_621_543_708,
        -0.000_854_832_675_130_370_2,
        0.000_120_553_209_055_902_51,
        -1.492_529_643_337_989_4e-5,
        1.645_516_264_731_058_3e-6,
        -1.627_498_316_185_872e-7,
        1.404_337_471_829_658_2e-8,
        -8.475_603_911_814_134e-10,
    ];

    #[inline(always)]
    fn complement<const FMA: bool>(a: Self) -> Self {
        const P: [f64; 12] = [
            0.179_001_151_181_280_77,
            -0.326_233_560_048_537_7,
            0.245_603_801_668_554_72,
            -0.150_115_935_201_010_46,
            0.071_665_869_388_496_64,
            -0.024_392_166_430_987_287,
            0.004_271_168_890_436_566,
            0.000_715_808_032_696_332_4,
            -0.000_575_597_632_706_197,
            8.357_741_368_376_216e-5,
            0.000_108_309_010_240_138_1,
            1.694_421_722_760_651_4e-5,
        ];
        let a = if a > 5.95 { 5.95 } else { a };
        let t = (a - 3.0) / (a + 3.0);
        exp::<Self, FMA>(-a * a) * polynomial::<Self, FMA>(t, &P)
    }
}

/// How many units in the last place the function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 1] = [("erf", [1.5, 1.5])];

/// The error function, within 1.5 ULP.
#[inline(always)]
pub(super) fn erf<T: Error, const FMA: bool>(x: T) -> T {
    let a = x.abs();
    let near = x.fma::<FMA>(polynomial::<T, FMA>(x * x, <T as Error>::Q), x);
    let far = (T::of(1.0) - T::complement::<FMA>(a)).copysign(x);
    // Of a negative zero, too.
    let near = if x == T::of(0.0) { x } else { near };
    if a < T::of(0.9) { near } else { far }
}
