//! Sine, cosine and tangent.
//!
//! ```text
//! x = n π + r             n is the nearest integer for the sine, the nearest half of an odd integer
//!                         for the cosine, so that |r| <= π/2; π in three parts
//! sin x = ± sin r         the sign is that of (-1)^n
//! sin r = r + r³ P(r²)
//! tan x = tan r           n is the nearest half of an integer, so that |r| <= π/4;
//!                         of an odd integer: -1 / tan r
//! tan r = r + r³ P(r²) / Q(r²)
//! ```
//!
//! One polynomial over the double range costs less than two over the single one and a choice; the
//! tangent has its pole there. The parts of π suffice up to [`Angle::LIMIT`]. Beyond it
//! [`crate::math::payne_hanek`] reduces, so that these functions are made [as tiles](crate::math::tile).

use std::mem::MaybeUninit;

use crate::math::lane::{Lane, polynomial, quick_two_sum, two_product, two_sum};
use crate::math::via_f64::{Double, via};

/// How a type reduces angles.
pub(super) trait Angle: Lane {
    /// The reduction holds for angles up to this.
    const LIMIT: Self;

    /// `sin r` for `r = x - n π`.
    fn sine<const FMA: bool>(x: Self, n: Self) -> Self;

    /// `tan x` for angles up to the limit but 0.
    fn tangent<const FMA: bool>(x: Self) -> Self;
}

impl Angle for f32 {
    const LIMIT: Self = 65536.0;

    #[inline(always)]
    fn sine<const FMA: bool>(x: Self, n: Self) -> Self {
        const P: [f32; 4] = [-0.166_666_6, 0.008_333_061, -0.000_198_091_54, 2.604_734_8e-6];
        if FMA {
            // The first difference is exact.
            let r = n.fma::<FMA>(-std::f32::consts::PI, x);
            let r = n.fma::<FMA>(8.742_278e-8, r);
            let r = n.fma::<FMA>(3.430_249e-15, r);
            // Where the series takes away most, what the square loses would count.
            let z = r * r;
            let lost = r.fma::<FMA>(r, -z) * P[0];
            r.fma::<FMA>(z.fma::<FMA>(polynomial::<Self, FMA>(z, &P), lost), r)
        } else {
            // Without fused products it takes more parts than doubles cost.
            let n = f64::from(n);
            let r = f64::from(x) - n * f64::PI[0] - n * f64::PI[1];
            let z = r * r;
            (r + r * (z * polynomial::<f64, FMA>(z, &P.map(f64::from)))) as Self
        }
    }

    /// Through doubles, whose last places do not count: one fraction, either way up.
    #[inline(always)]
    fn tangent<const FMA: bool>(x: Self) -> Self {
        const ABOVE: [f64; 3] =
            [1.000_000_000_022_087_2, -0.111_361_439_628_992_89, 0.001_075_154_688_357_912];
        const BELOW: [f64; 3] = [1.0, -0.444_694_771_300_469, 0.015_973_391_840_528_997];
        let x = f64::from(x);
        let (n, odd) = halves::<FMA>(x);
        let r = n.fma::<FMA>(-f64::PI[1], n.fma::<FMA>(-f64::PI[0], x));
        let z = r * r;
        let above = r * polynomial::<f64, FMA>(z, &ABOVE);
        let below = polynomial::<f64, FMA>(z, &BELOW);
        let (above, below) = if odd { (-below, above) } else { (above, below) };
        (above / below) as Self
    }
}

/// How many times π goes into x, to the nearest half, and whether it is half of an odd integer.
#[inline(always)]
fn halves<const FMA: bool>(x: f64) -> (f64, bool) {
    let sum = x.fma::<FMA>(std::f64::consts::FRAC_2_PI, f64::MAGIC);
    ((sum - f64::MAGIC) * 0.5, sum.to_bits() & 1 == 1)
}

/// `x - n π`, and what it is too small by, for `n` that is half of an integer.
#[inline(always)]
fn remaining<const FMA: bool>(x: f64, n: f64) -> (f64, f64) {
    // Near a multiple of π all of the first parts cancels: r keeps what it loses.
    let first = n.fma::<FMA>(-f64::PI[0], x);
    let (product, lost) = two_product::<f64, FMA>(n, -f64::PI[1]);
    let (sum, rest) = two_sum(first, product);
    quick_two_sum(sum, rest + n.fma::<FMA>(-f64::PI[2], lost))
}

/// The parts of π for doubles: the first has 32 bits, so that products with n are exact.
trait Parts {
    const PI: [f64; 3];
}

impl Parts for f64 {
    const PI: [f64; 3] =
        [3.141_592_653_468_251_2, 1.215_420_101_301_238_4e-10, 7.043_119_730_366_4e-27];
}

impl Angle for f64 {
    const LIMIT: Self = 1_048_576.0;

    #[inline(always)]
    fn sine<const FMA: bool>(x: Self, n: Self) -> Self {
        let (r, rest) = remaining::<FMA>(x, n);
        sine::<FMA>(r, rest)
    }

    #[inline(always)]
    fn tangent<const FMA: bool>(x: Self) -> Self {
        let (n, odd) = halves::<FMA>(x);
        let (r, rest) = remaining::<FMA>(x, n);
        tangent::<FMA>(r, rest, odd)
    }
}

/// `tan (r + rest)` for `r` up to π/4 and a `rest` below its last place; of an angle that is an `odd`
/// multiple of π/2 larger, otherwise.
#[inline(always)]
pub(super) fn tangent<const FMA: bool>(r: f64, rest: f64, odd: bool) -> f64 {
    const P: [f64; 4] = [
        0.333_333_333_333_333_3,
        -0.021_441_181_092_494_09,
        0.000_244_812_190_908_686_2,
        -1.786_443_201_388_320_7e-8,
    ];
    const Q: [f64; 4] =
        [1.0, -0.464_323_543_277_482_2, 0.024_559_091_978_955_724, -0.000_255_963_272_215_769_24];
    let z = r * r;
    let fraction = z * polynomial::<f64, FMA>(z, &P) / polynomial::<f64, FMA>(z, &Q);
    let near = r.fma::<FMA>(fraction, r);
    let slope = near.fma::<FMA>(near, 1.0);
    let (t, lost) = quick_two_sum(r, r.fma::<FMA>(fraction, rest * slope));
    // The slope of -1 / t is 1 / t².
    let over = -1.0 / t;
    if odd { (over * over).fma::<FMA>(lost, over) } else { t }
}

/// `sin (r + rest)` for `r` up to π/2 and a `rest` below its last place.
#[inline(always)]
pub(super) fn sine<const FMA: bool>(r: f64, rest: f64) -> f64 {
    const P: [f64; 8] = [
        -0.166_666_666_666_666_66,
        0.008_333_333_333_333_193,
        -0.000_198_412_698_412_088_58,
        2.755_731_921_107_322e-6,
        -2.505_210_686_677_277_4e-8,
        1.605_893_939_502_885_2e-10,
        -7.642_983_207_462_257e-13,
        2.721_085_839_262_110_7e-15,
    ];
    let z = r * r;
    // The slope of the sine is about 1 - (2 r / π)².
    let rest = rest * z.fma::<FMA>(-0.405_284_734_569_351, 1.0);
    r + (r * z).fma::<FMA>(polynomial::<f64, FMA>(z, &P), rest)
}

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 3] =
    [("sin", [2.0, 2.0]), ("cos", [2.0, 2.0]), ("tan", [0.51, 1.5])];

/// The sine of angles up to [`Angle::LIMIT`], within 2 ULP.
#[inline(always)]
pub(super) fn sin<T: Angle, const FMA: bool>(x: T) -> T {
    let sum = x.fma::<FMA>(T::of(std::f64::consts::FRAC_1_PI), T::MAGIC);
    let y = T::sine::<FMA>(x, sum - T::MAGIC).flipped(sum);
    // Of a negative zero, too.
    if x == T::of(0.0) { x } else { y }
}

/// The cosine of angles up to [`Angle::LIMIT`], within 2 ULP.
#[inline(always)]
pub(super) fn cos<T: Angle, const FMA: bool>(x: T) -> T {
    let sum = x.fma::<FMA>(T::of(std::f64::consts::FRAC_1_PI), T::of(-0.5)) + T::MAGIC;
    -T::sine::<FMA>(x, (sum - T::MAGIC) + T::of(0.5)).flipped(sum)
}

/// The tangent of angles up to [`Angle::LIMIT`], within 1.5 ULP.
#[inline(always)]
pub(super) fn tan<T: Angle, const FMA: bool>(x: T) -> T {
    let y = T::tangent::<FMA>(x);
    if x == T::of(0.0) { x } else { y }
}

/// Whether it is an angle beyond [`Angle::LIMIT`].
#[inline(always)]
pub(super) fn is_far<T: Angle>(x: T) -> bool {
    x.abs() > T::LIMIT
}

/// `to` becomes `tame` of the values of `from` up to [`Angle::LIMIT`], and of NaN, and `wild` of
/// the others.
#[inline(always)]
pub(super) fn tile<T: Angle + Double>(
    from: impl Fn(usize) -> T,
    to: &mut [MaybeUninit<T>],
    tame: impl Fn(T) -> T,
    wild: fn(f64) -> f64,
) {
    let any = |x: T| if is_far(x) { via(x, wild) } else { tame(x) };
    crate::math::tile::tile(from, to, |x| !is_far(x), &tame, any);
}
