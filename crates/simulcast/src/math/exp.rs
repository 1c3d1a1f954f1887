//! Exponentials: `exp`, `exp2`, `expm1`, and what is made of them: `tanh` and the logistic sigmoid.
//!
//! ```text
//! x = n ln 2 + r      n is the nearest integer, so that |r| <= ln 2 / 2; ln 2 has two parts, the
//!                     first short enough for an exact product with n
//! e^r - 1 = r + r² Q(r)
//! e^x = 2^n e^r       the power of two in two factors, so that results round once among the
//!                     subnormal numbers and overflow where they should
//! ```

use super::lane::{Lane, polynomial, power, quick_two_sum, scaled, two_sum};

/// The constants of a type.
pub(super) trait Exponential: Lane + 'static {
    /// Above this, e^x is infinite; below its lower sibling, zero.
    const MOST: Self;
    const LEAST: Self;
    /// ln 2 in two parts.
    const LN2: [Self; 2];
    /// From here on tanh is 1.
    const FLAT: Self;
    /// Q, by the Remez exchange.
    const Q: &'static [Self];
    /// The series of tanh, by the same.
    const T: &'static [Self];
}

impl Exponential for f32 {
    const MOST: Self = 89.0;
    const LEAST: Self = -104.0;
    const LN2: [Self; 2] = [0.693_115_23, 3.194_618_3e-5];
    const FLAT: Self = 10.0;
    const Q: &'static [Self] =
        &[0.5, 0.166_666_66, 0.041_666_36, 0.008_333_39, 0.001_394_072, 0.000_198_458_37];
    const T: &'static [Self] =
        &[-0.333_333_16, 0.133_325_85, -0.053_852_2, 0.021_071_2, -0.006_273_516];
}

impl Exponential for f64 {
    const MOST: Self = 710.0;
    const LEAST: Self = -746.0;
    const LN2: [Self; 2] = [0.693_147_180_559_208_2, 7.371_002_565_167_799e-13];
    const FLAT: Self = 20.0;
    const Q: &'static [Self] = &[
        0.5,
        0.166_666_666_666_666_77,
        0.041_666_666_666_666_505,
        0.008_333_333_333_321_608,
        0.001_388_888_888_896_290_6,
        0.000_198_412_698_862_064_2,
        2.480_158_717_186_171_5e-5,
        2.755_724_410_568_848_2e-6,
        2.755_740_291_278_314_4e-7,
        2.510_908_087_368_861_3e-8,
        2.087_533_859_347_769_3e-9,
    ];
    const T: &'static [Self] = &[
        -0.333_333_333_333_333,
        0.133_333_333_333_266,
        -0.053_968_253_963_747_34,
        0.021_869_488_385_463_473,
        -0.008_863_232_594_809_202,
        0.003_592_091_961_412_341_6,
        -0.001_455_542_388_396_855_5,
        0.000_588_442_552_135_437_4,
        -0.000_233_376_512_730_014_7,
        8.330_901_947_817_45e-5,
        -1.948_998_839_099_267e-5,
    ];
}

/// `(n, r)` with `x = n ln 2 + r`.
#[inline(always)]
pub(super) fn reduced<T: Exponential, const FMA: bool>(x: T) -> (T, T) {
    let n = x.fma::<FMA>(T::of(std::f64::consts::LOG2_E), T::MAGIC) - T::MAGIC;
    let r = n.fma::<FMA>(-T::LN2[0], x);
    (n, n.fma::<FMA>(-T::LN2[1], r))
}

/// `e^r - 1` for a reduced `r`.
#[inline(always)]
pub(super) fn growth<T: Exponential, const FMA: bool>(r: T) -> T {
    (r * r).fma::<FMA>(polynomial::<T, FMA>(r, T::Q), r)
}

/// `x`, brought between two bounds; NaN stays.
#[inline(always)]
fn between<T: Lane>(x: T, least: T, most: T) -> T {
    let x = if x > most { most } else { x };
    if x < least { least } else { x }
}

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 5] = [
    ("exp", [1.0, 1.0]),
    ("exp2", [1.5, 1.5]),
    ("expm1", [2.0, 2.0]),
    ("tanh", [1.5, 2.0]),
    ("sigmoid", [2.0, 2.0]),
];

/// `e^x`, within 1 ULP.
#[inline(always)]
pub(super) fn exp<T: Exponential, const FMA: bool>(x: T) -> T {
    let (n, r) = reduced::<T, FMA>(between(x, T::LEAST, T::MOST));
    scaled(T::of(1.0) + growth::<T, FMA>(r), n)
}

/// `2^x`, within 1.5 ULP: as `e^x`, but x less its nearest integer is exact.
#[inline(always)]
pub(super) fn exp2<T: Exponential, const FMA: bool>(x: T) -> T {
    // log2 e is below 1.5.
    let x = between(x, T::LEAST * T::of(1.5), T::MOST * T::of(1.5));
    let n = (x + T::MAGIC) - T::MAGIC;
    let r = (x - n) * T::of(std::f64::consts::LN_2);
    scaled(T::of(1.0) + growth::<T, FMA>(r), n)
}

/// `e^x - 1`, within 2 ULP: `2^n ((1 - 2^-n) + r + r² Q(r))`, summed with what its first sum loses.
#[inline(always)]
pub(super) fn expm1<T: Exponential, const FMA: bool>(x: T) -> T {
    let (n, r) = reduced::<T, FMA>(between(x, T::of(-60.0), T::MOST));
    // Beyond 100 the power is lost in the 1.
    let inverse = power(if n > T::of(100.0) { T::of(-100.0) } else { -n });
    let (sum, lost) = two_sum(T::of(1.0) - inverse, r);
    let small = (r * r).fma::<FMA>(polynomial::<T, FMA>(r, T::Q), lost);
    let y = scaled(sum + small, n);
    // Of a negative zero, too.
    if x == T::of(0.0) { x } else { y }
}

/// The hyperbolic tangent, within 1.5 ULP of `f32` and 2 of `f64`: `x + x³ T(x²)` up to 0.55, then `1 - 2 / (e^2|x| + 1)`, of
/// which at most half is taken away. Both are computed and one is chosen.
#[inline(always)]
pub(super) fn tanh<T: Exponential, const FMA: bool>(x: T) -> T {
    let z = x * x;
    let near = x.fma::<FMA>(z * polynomial::<T, FMA>(z, T::T), x);
    let a = x.abs();
    let (n, r) = reduced::<T, FMA>(if a > T::FLAT { T::FLAT + T::FLAT } else { a + a });
    let e = power(n) * (T::of(1.0) + growth::<T, FMA>(r));
    let far = T::of(1.0) - T::of(2.0) / (e + T::of(1.0));
    (if a < T::of(0.55) { near } else { far }).copysign(x)
}

/// `1 / (1 + e^-x)`, within 2 ULP: from `e^-|x|`, which does not overflow.
#[inline(always)]
pub(super) fn sigmoid<T: Exponential, const FMA: bool>(x: T) -> T {
    let e = exp::<T, FMA>(-x.abs());
    let (sum, lost) = quick_two_sum(T::of(1.0), e);
    let y = (if x < T::of(0.0) { e } else { T::of(1.0) }) / sum;
    // Where e is small, this is what the sum lost; elsewhere, not worse.
    y.fma::<FMA>(-lost, y)
}
