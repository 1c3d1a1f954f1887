//! Exponentials: `exp`, `exp2`, `expm1`, and what is made of them: `tanh` and the logistic sigmoid.
//!
//! ```text
//! x = n ln 2 + r      n is the nearest integer, so that |r| <= ln 2 / 2; ln 2 has two parts, the
//!                     first short enough for an exact product with n
//! e^r - 1 = r + r² Q(r)
//! e^x = 2^n e^r       the power of two in two factors, so that results round once among the
//!                     subnormal numbers and overflow where they should
//! ```

use super::lane::{Lane, polynomial, power, scaled};

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
}

impl Exponential for f32 {
    const MOST: Self = 89.0;
    const LEAST: Self = -104.0;
    const LN2: [Self; 2] = [0.693_115_23, 3.194_618_3e-5];
    const FLAT: Self = 10.0;
    const Q: &'static [Self] =
        &[0.5, 0.166_666_66, 0.041_666_36, 0.008_333_39, 0.001_394_072, 0.000_198_458_37];
}

impl Exponential for f64 {
    const MOST: Self = 710.0;
    const LEAST: Self = -746.0;
    const LN2: [Self; 2] = [0.693_147_180_559_208_2, 7.371_002_565_167_799e-13];
    const FLAT: Self = 20.0;
    const Q: &'static [Self] = &[
        0.500_000_000_000_000_6,
        0.166_666_666_666_665_88,
        0.041_666_666_666_576_1,
        0.008_333_333_333_389_929,
        0.001_388_888_893_179_676,
        0.000_198_412_697_184_059_48,
        2.480_150_497_728_496_5e-5,
        2.755_740_780_878_498_4e-6,
        2.762_616_191_535_158e-7,
        2.505_379_372_019_519_4e-8,
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
    ("exp2", [1.0, 1.0]),
    ("expm1", [1.5, 1.5]),
    ("tanh", [2.0, 2.0]),
    ("sigmoid", [2.0, 2.0]),
];

/// `e^x`, within 1 ULP.
#[inline(always)]
pub(super) fn exp<T: Exponential, const FMA: bool>(x: T) -> T {
    let (n, r) = reduced::<T, FMA>(between(x, T::LEAST, T::MOST));
    scaled(T::of(1.0) + growth::<T, FMA>(r), n)
}

/// `2^x`, within 1 ULP: as `e^x`, but x less its nearest integer is exact.
#[inline(always)]
pub(super) fn exp2<T: Exponential, const FMA: bool>(x: T) -> T {
    // log2 e is below 1.5.
    let x = between(x, T::LEAST * T::of(1.5), T::MOST * T::of(1.5));
    let n = (x + T::MAGIC) - T::MAGIC;
    let r = (x - n) * T::of(std::f64::consts::LN_2);
    scaled(T::of(1.0) + growth::<T, FMA>(r), n)
}

/// `e^x - 1`, within 1.5 ULP: `2^n (e^r - 1 + (1 - 2^-n))`, where the inner difference is exact or
/// all that is left.
#[inline(always)]
pub(super) fn expm1<T: Exponential, const FMA: bool>(x: T) -> T {
    let (n, r) = reduced::<T, FMA>(between(x, T::of(-60.0), T::MOST));
    // Beyond 100 the power is lost in the 1.
    let inverse = power(if n > T::of(100.0) { T::of(-100.0) } else { -n });
    let y = scaled(growth::<T, FMA>(r) + (T::of(1.0) - inverse), n);
    // Of a negative zero, too.
    if x == T::of(0.0) { x } else { y }
}

/// The hyperbolic tangent, within 2 ULP: `g / (g + 2)` with `g = e^2|x| - 1`.
#[inline(always)]
pub(super) fn tanh<T: Exponential, const FMA: bool>(x: T) -> T {
    let a = x.abs();
    let a = if a > T::FLAT { T::FLAT } else { a };
    let (n, r) = reduced::<T, FMA>(a + a);
    let power = power(n);
    let g = power.fma::<FMA>(growth::<T, FMA>(r), power - T::of(1.0));
    (g / (g + T::of(2.0))).copysign(x)
}

/// `1 / (1 + e^-x)`, within 2 ULP: from `e^-|x|`, which does not overflow.
#[inline(always)]
pub(super) fn sigmoid<T: Exponential, const FMA: bool>(x: T) -> T {
    let e = exp::<T, FMA>(-x.abs());
    (if x < T::of(0.0) { e } else { T::of(1.0) }) / (T::of(1.0) + e)
}
