//! The angle of a tangent, of a point, of a sine and of a cosine, of doubles.
//!
//! ```text
//! atan a = π/2 + atan (-1 / a) = π/4 + atan ((a - 1) / (a + 1))       one of the three
//! atan t = t + t z P(z) / Q(z)                                        z = t²
//! asin a = π/2 - 2 asin √((1 - a) / 2)                                above 1/2
//! asin t = t + t z R(z) / S(z)                                        z = t²
//! acos a = π/2 - asin a = 2 asin √((1 - a) / 2)                       below 1/2, and above
//! ```
//!
//! The first fraction is that of Moshier's Cephes library, the second that of Sun's fdlibm.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use crate::math::lane::{Lane, polynomial};

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 4] =
    [("atan", [0.51, 2.0]), ("atan2", [0.51, 2.5]), ("asin", [0.51, 2.0]), ("acos", [0.51, 2.0])];

/// `t + t z P(z) / Q(z)`: the angle of a tangent up to 0.66 in size, and a `rest` of it.
#[inline(always)]
fn narrow<const FMA: bool>(t: f64, rest: f64) -> f64 {
    const P: [f64; 5] = [
        -6.485_021_904_942_025e1,
        -1.228_866_684_490_136_2e2,
        -7.500_855_792_314_705e1,
        -1.615_753_718_733_365e1,
        -8.750_608_600_031_904e-1,
    ];
    const Q: [f64; 6] = [
        1.945_506_571_482_614e2,
        4.853_903_996_359_137e2,
        4.328_810_604_912_903e2,
        1.650_270_098_316_988_5e2,
        2.485_846_490_142_306_3e1,
        1.0,
    ];
    let z = t * t;
    let fraction = z * polynomial::<f64, FMA>(z, &P) / polynomial::<f64, FMA>(z, &Q);
    t + t.fma::<FMA>(fraction, rest)
}

/// What π/2 and its half are too small by.
const REST: f64 = 6.123_233_995_736_766e-17;

/// The angle of `above / below`, neither of which is negative or both infinite, within 2 ULP.
#[inline(always)]
fn angle<const FMA: bool>(above: f64, below: f64) -> f64 {
    let (large, middle) = (above > 2.414_213_562_373_095 * below, above > 0.66 * below);
    let (over, under, base, rest) = if large {
        (-below, above, FRAC_PI_2, REST)
    } else if middle {
        (above - below, above + below, FRAC_PI_4, 0.5 * REST)
    } else {
        (above, below, 0.0, 0.0)
    };
    base + narrow::<FMA>(over / under, rest)
}

/// The angle of a tangent, within 2 ULP.
#[inline(always)]
pub(super) fn atan<const FMA: bool>(x: f64) -> f64 {
    angle::<FMA>(x.abs(), 1.0).copysign(x)
}

/// The angle of the point `(x, y)`, within 2.5 ULP.
#[inline(always)]
pub(super) fn atan2<const FMA: bool>(y: f64, x: f64) -> f64 {
    let (a, b) = (y.abs(), x.abs());
    // Large numbers are made smaller, so that no sum of two is infinite, and small ones larger, so
    // that they have all their digits; both infinite are both 1.
    let top = if a > b { a } else { b };
    let by = if top > 1e300 { 0.25 } else { 1.0 };
    let by = if top < 1e-280 { (1_u128 << 100) as f64 } else { by };
    let both = a == f64::INFINITY && b == f64::INFINITY;
    let (above, below) = if both { (1.0, 1.0) } else { (a * by, b * by) };
    // Of no distance the angle is 0, not that of 0 / 0.
    let below = if top == 0.0 { 1.0 } else { below };
    let angle = angle::<FMA>(above, below);
    let angle = if 1.0_f64.copysign(x) < 0.0 { PI - (angle - 2.0 * REST) } else { angle };
    let nan = x + y;
    if nan.is_nan() && !both { nan } else { angle.copysign(y) }
}

/// Whether `a` is above 1/2; then `t` is the sine of half the angle of that cosine, else it is `a`. And how much longer
/// than `t` the arc of that sine is.
#[inline(always)]
fn arc<const FMA: bool>(a: f64) -> (bool, f64, f64) {
    const R: [f64; 6] = [
        1.666_666_666_666_666_6e-1,
        -3.255_658_186_224_009e-1,
        2.012_125_321_348_629_3e-1,
        -4.005_553_450_067_941e-2,
        7.915_349_942_898_145e-4,
        3.479_331_075_960_212e-5,
    ];
    const S: [f64; 5] = [
        1.0,
        -2.403_394_911_734_414,
        2.020_945_760_233_505_7,
        -6.882_839_716_054_533e-1,
        7.703_815_055_590_194e-2,
    ];
    let large = a > 0.5;
    let z = if large { (1.0 - a) * 0.5 } else { a * a };
    let t = if large { z.sqrt() } else { a };
    let more = t * (z * polynomial::<f64, FMA>(z, &R) / polynomial::<f64, FMA>(z, &S));
    (large, t, more)
}

/// The angle of a sine, within 2 ULP.
#[inline(always)]
pub(super) fn asin<const FMA: bool>(x: f64) -> f64 {
    let (large, t, more) = arc::<FMA>(x.abs());
    let y = if large { FRAC_PI_2 - (2.0 * t + (2.0 * more - REST)) } else { t + more };
    y.copysign(x)
}

/// The angle of a cosine, within 2 ULP.
#[inline(always)]
pub(super) fn acos<const FMA: bool>(x: f64) -> f64 {
    let (large, t, more) = arc::<FMA>(x.abs());
    let (t, more) = (t.copysign(x), more.copysign(x));
    let (base, rest) = if x < 0.0 { (PI, 2.0 * REST) } else { (0.0, 0.0) };
    if large { base + (2.0 * t + (2.0 * more + rest)) } else { FRAC_PI_2 - (t - (REST - more)) }
}
