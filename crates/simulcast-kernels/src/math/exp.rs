//! Exponentials: `exp`, `exp2`, `expm1`, and the functions computed from them: `tanh` and the logistic sigmoid.
//!
//! ```text
//! x = n ln 2 + r      n is the nearest integer, so that |r| <= ln 2 / 2; ln 2 has two parts, the
//!                     first short enough for an exact product with n
//! e^r - 1 = r + r² Q(r)
//! e^x = 2^n e^r       the power of two in two factors, so that results round once among the
//!                     subnormal numbers and overflow where they should
//! sigmoid x = s / ((1 + s) + (e^r - 1))                               where e^-x = e^r / s
//! tanh |x| = ((s - 1) - (e^r - 1)) / ((s + 1) + (e^r - 1))            where e^-2|x| = e^r / s
//! ```
//!
//! Sums of 1 and a power of two are exact where it matters, so that what is divided is rounded once,
//! and no choice between formulas is needed. Loops are as fast as the units for products are: sums
//! and bits are worked on beside them.

use std::mem::MaybeUninit;

use crate::math::lane::{Lane, polynomial, power, quick_two_sum, scaled, split, two_sum};
use crate::math::tile::tile;

/// The constants of a type.
pub(super) trait Exponential: Lane + 'static {
    /// Above this, e^x is infinite; below its lower sibling, zero.
    const MOST: Self;
    const LEAST: Self;
    /// Up to this in size, e^x and its inverse are normal numbers.
    const USUAL: Self;
    /// ln 2 in two parts.
    const LN2: [Self; 2];
    /// Whether, with fused products, the nearest number to ln 2 serves tanh as well as two parts.
    const ONE_PART: bool;
    /// From here on tanh is 1.
    const FLAT: Self;
    /// Q, by the Remez exchange: good to a tenth of an ULP of e^r.
    const Q: &'static [Self];
    /// The same for `(e^2v - 1) / 2 = v + v² H(v)`, good to a hundredth of an ULP.
    const H: &'static [Self];
}

impl Exponential for f32 {
    const MOST: Self = 89.0;
    const LEAST: Self = -104.0;
    const USUAL: Self = 87.0;
    const LN2: [Self; 2] = [0.693_115_23, 3.194_618_3e-5];
    const ONE_PART: bool = true;
    const FLAT: Self = 10.0;
    const Q: &'static [Self] = &[0.5, 0.166_665_33, 0.041_667_21, 0.008_367_581, 0.001_386_626_6];
    const H: &'static [Self] =
        &[1.0, 0.666_666_6, 0.333_331_94, 0.133_336_72, 0.044_583_492, 0.012_647_85];
}

impl Exponential for f64 {
    const MOST: Self = 710.0;
    const LEAST: Self = -746.0;
    const USUAL: Self = 708.0;
    const LN2: [Self; 2] = [0.693_147_180_559_208_2, 7.371_002_565_167_799e-13];
    const ONE_PART: bool = false;
    const FLAT: Self = 20.0;
    const Q: &'static [Self] = &[
        0.5,
        0.166_666_666_666_665_55,
        0.041_666_666_666_616_56,
        0.008_333_333_333_436_34,
        0.001_388_888_892_209_874_1,
        0.000_198_412_695_739_377_67,
        2.480_151_418_000_285e-5,
        2.755_756_796_941_86e-6,
        2.762_313_448_396_497_7e-7,
        2.499_528_823_894_378e-8,
    ];
    const H: &'static [Self] = &[
        1.0,
        0.666_666_666_666_667_1,
        0.333_333_333_333_333_5,
        0.133_333_333_333_148_3,
        0.044_444_444_444_453_77,
        0.012_698_412_726_662_063,
        0.003_174_603_172_413_618_3,
        0.000_705_465_474_464_708_8,
        0.000_141_093_500_102_971_12,
        2.571_131_097_706_904_2e-5,
        4.279_418_677_742_54e-6,
    ];
}

/// `(sum, r)` with `x = n ln 2 + r` and `sum = n + zero`, which is [`Lane::MAGIC`] and an integer.
#[inline(always)]
pub(super) fn reduced<T: Exponential, const FMA: bool>(x: T, zero: T) -> (T, T) {
    let sum = x.fma::<FMA>(T::of(std::f64::consts::LOG2_E), zero);
    let n = sum - zero;
    let r = n.fma::<FMA>(-T::LN2[0], x);
    (sum, n.fma::<FMA>(-T::LN2[1], r))
}

/// `(e^2v - 1) / 2` for the half of a reduced number, more exactly than [`growth`].
#[inline(always)]
fn half_growth<T: Exponential, const FMA: bool>(v: T) -> T {
    (v * v).fma::<FMA>(split::<T, FMA>(v, T::H), v)
}

/// `e^r - 1` for a reduced `r`.
#[inline(always)]
fn growth<T: Exponential, const FMA: bool>(r: T) -> T {
    (r * r).fma::<FMA>(split::<T, FMA>(r, T::Q), r)
}

/// `e^r` for a reduced `r`.
#[inline(always)]
pub(super) fn grown<T: Exponential, const FMA: bool>(r: T) -> T {
    let one = T::of(1.0);
    if FMA {
        let slope = r.fma::<FMA>(polynomial::<T, FMA>(r, T::Q), one);
        r.fma::<FMA>(slope, one)
    } else {
        // A product would be rounded where most of it stays.
        one + half_growth::<T, FMA>(r * T::of(0.5)) * T::of(2.0)
    }
}

/// `x` clamped to two bounds; NaN stays.
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
    ("tanh", [2.0, 2.0]),
    ("sigmoid", [2.0, 2.0]),
];

/// `to` becomes `e^x` of `from` of its indices, within 1 ULP.
#[inline(always)]
pub(super) fn exp_tile<T: Exponential, const FMA: bool>(
    from: impl Fn(usize) -> T,
    to: &mut [MaybeUninit<T>],
) {
    let usual = |x: T| {
        let (sum, r) = reduced::<T, FMA>(x, T::MAGIC);
        grown::<T, FMA>(r).raised(sum)
    };
    tile(from, to, |x| x.abs() <= T::USUAL, usual, exp::<T, FMA>);
}

/// `e^x`, within 1 ULP: of any number, with the bits of [`exp_tile`].
#[inline(always)]
pub(super) fn exp<T: Exponential, const FMA: bool>(x: T) -> T {
    let x = between(x, T::LEAST, T::MOST);
    let (sum, r) = reduced::<T, FMA>(x, T::MAGIC + T::BIAS + T::BIAS);
    let (first, rest) = sum.powers();
    grown::<T, FMA>(r) * first * rest
}

/// `2^x`, within 1.5 ULP: as `e^x`, but x less its nearest integer is exact.
#[inline(always)]
pub(super) fn exp2<T: Exponential, const FMA: bool>(x: T) -> T {
    // log2 e is below 1.5.
    let x = between(x, T::LEAST * T::of(1.5), T::MOST * T::of(1.5));
    let zero = T::MAGIC + T::BIAS + T::BIAS;
    let sum = x + zero;
    let r = (x - (sum - zero)) * T::of(std::f64::consts::LN_2);
    let (first, rest) = sum.powers();
    grown::<T, FMA>(r) * first * rest
}

/// `e^x - 1`, within 2 ULP: `2^n ((1 - 2^-n) + r + r² Q(r))`, summed with what its first sum loses.
#[inline(always)]
pub(super) fn expm1<T: Exponential, const FMA: bool>(x: T) -> T {
    let (sum, r) = reduced::<T, FMA>(between(x, T::of(-60.0), T::MOST), T::MAGIC);
    let n = sum - T::MAGIC;
    // Beyond 100 the power is lost in the 1.
    let inverse = power(if n > T::of(100.0) { T::of(-100.0) } else { -n });
    let (sum, lost) = two_sum(T::of(1.0) - inverse, r);
    let small = (r * r).fma::<FMA>(split::<T, FMA>(r, T::Q), lost);
    let y = scaled(sum + small, n);
    // Of a negative zero, too.
    if x == T::of(0.0) { x } else { y }
}

/// The hyperbolic tangent, within 2 ULP. Of `-|x|`, since then what is divided by is just below a power
/// of two where that counts; and all over 2, which saves doubling x.
#[inline(always)]
pub(super) fn tanh<T: Exponential, const FMA: bool>(x: T) -> T {
    let half = T::of(0.5);
    let a = -x.abs();
    let a = if a < -T::FLAT { -T::FLAT } else { a };
    let zero = T::MAGIC + T::BIAS - T::of(1.0);
    let sum = a.fma::<FMA>(T::of(-2.0 * std::f64::consts::LOG2_E), zero);
    let n = sum - zero;
    let v = if FMA && T::ONE_PART {
        n.fma::<FMA>(half * T::of(std::f64::consts::LN_2), a)
    } else {
        n.fma::<FMA>(half * T::LN2[1], n.fma::<FMA>(half * T::LN2[0], a))
    };
    let growth = half_growth::<T, FMA>(v);
    let s = sum.power();
    let (above, above_lost) = quick_two_sum(half - s, growth);
    let (below, below_lost) = quick_two_sum(half + s, growth);
    let y = above / below;
    // Without fused products, more is lost before, so that less may be lost here.
    let y = if FMA { y } else { y + (above_lost - y * below_lost) / below };
    y.copysign(x)
}

/// `1 / (1 + e^-x)`, within 2 ULP.
#[inline(always)]
pub(super) fn sigmoid<T: Exponential, const FMA: bool>(x: T) -> T {
    // Results that may be subnormal numbers are made among the normal ones, and brought down last.
    const UP: f64 = 64.0;
    let down = T::of(1.0 / (1_u128 << 64) as f64);
    let x = between(x, T::LEAST, T::FLAT + T::FLAT);
    let zero = T::MAGIC + T::BIAS + T::of(UP);
    let sum = x.fma::<FMA>(T::of(std::f64::consts::LOG2_E), zero);
    let n = sum - zero;
    let r = n.fma::<FMA>(T::LN2[1], n.fma::<FMA>(T::LN2[0], -x));
    let s = sum.power();
    // Where s is small, the sum loses some of it.
    let (one, lost) = quick_two_sum(T::of(1.0), s * down);
    s / (one + (growth::<T, FMA>(r) + lost)) * down
}
