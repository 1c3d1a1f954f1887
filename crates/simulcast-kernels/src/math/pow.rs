//! Powers.
//!
//! ```text
//! |x| = 2^e m             m between the roots of 1/2 and 2
//! t = (m - 1) / (m + 1)
//! log2 m = t (C0 + C1 t² + t⁴ P(t²))
//! x^y = 2^(y (e + log2 m)) = 2^n e^(r ln 2), n the nearest integer
//! ```
//!
//! An error of the logarithm is multiplied by up to a thousand, so that it must have more digits than
//! the result. For `f32` doubles have them; for `f64` every number on the way is the sum of two.
//! Then come the special values, as C99 has them.

use crate::math::lane::{Lane, polynomial, power, quick_two_sum, scaled, two_product, two_sum};

/// How many units in the last place the function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 1] = [("pow", [0.51, 1.0])];

/// A type with powers.
pub(super) trait Power: Lane {
    /// `a^y` for `a` that is not negative and, with `y`, none of the special cases.
    fn magnitude<const FMA: bool>(a: Self, y: Self) -> Self;
}

/// `x^y`: within 0.51 ULP of `f32`, 1 of `f64`.
#[inline(always)]
pub(super) fn pow<T: Power, const FMA: bool>(x: T, y: T) -> T {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    let a = x.abs();
    let y_whole = whole(y);
    let odd = y_whole & !whole(y * T::of(0.5));
    let power = T::magnitude::<FMA>(a, y);
    // -1 to an infinite power is 1.
    let power = if (a == one) & (y.abs() == T::INFINITY) { one } else { power };
    let signed = if odd { power.copysign(x) } else { power };
    let real = if (x < zero) & (a < T::INFINITY) & !y_whole { T::NAN } else { signed };
    if (y == zero) | (x == one) { one } else { real }
}

/// Whether a number is an integer; infinite ones are.
#[inline(always)]
fn whole<T: Lane>(x: T) -> bool {
    let a = x.abs();
    // From here on there are no fractions, and below it a sum with this has none.
    let large = T::MAGIC * T::of(2.0 / 3.0);
    (a >= large) | ((a + large) - large == a)
}

/// The logarithm of zero, infinity and NaN, or `log`.
#[inline(always)]
fn edges<T: Lane>(a: T, log: T) -> T {
    let log = if a == T::of(0.0) { -T::INFINITY } else { log };
    if a < T::INFINITY { log } else { a }
}

impl Power for f32 {
    #[inline(always)]
    fn magnitude<const FMA: bool>(a: Self, y: Self) -> Self {
        const P: [f64; 6] = [
            2.885_390_081_777_849_5,
            0.961_796_694_114_070_1,
            0.577_077_942_167_474_5,
            0.412_209_271_271_914_37,
            0.319_904_956_421_014_5,
            0.282_910_330_393_773_95,
        ];
        const Q: [f64; 6] = [
            0.500_000_004_439_497_9,
            0.166_666_663_687_001_8,
            0.041_666_359_832_971_76,
            0.008_333_389_644_426_042,
            0.001_394_071_912_188_691_5,
            0.000_198_458_357_956_010_55,
        ];
        let (e, m) = a.parts();
        let (e, m) = (f64::from(e), f64::from(m));
        let t = (m - 1.0) / (m + 1.0);
        let log = t.fma::<FMA>(polynomial::<f64, FMA>(t * t, &P), e);
        let log = edges(f64::from(a), log);
        let p = f64::from(y) * log;
        // Beyond this the result is infinite or zero, as it is here.
        let p = if p > 200.0 { 200.0 } else { p };
        let p = if p < -200.0 { -200.0 } else { p };
        let n = (p + f64::MAGIC) - f64::MAGIC;
        let r = (p - n) * std::f64::consts::LN_2;
        let growth = (r * r).fma::<FMA>(polynomial::<f64, FMA>(r, &Q), r);
        (power(n) * (1.0 + growth)) as Self
    }
}

impl Power for f64 {
    #[inline(always)]
    fn magnitude<const FMA: bool>(a: Self, y: Self) -> Self {
        const C0: [f64; 2] = [2.885_390_081_777_926_8, 4.071_054_748_186_206_6e-17];
        const C1: [f64; 2] = [0.961_796_693_925_975_6, 5.057_761_664_812_590_7e-17];
        const P: [f64; 7] = [
            0.577_078_016_355_618,
            0.412_198_583_091_954_06,
            0.320_598_902_271_055,
            0.262_307_701_342_514_24,
            0.221_983_987_912_375_86,
            0.191_255_386_441_062_9,
            0.190_383_369_803_243_5,
        ];
        const Q: [f64; 11] = [
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
        const LN2: [f64; 2] = [std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17];
        let (e, m) = a.parts();

        // t, from a difference that is exact and a sum that is not.
        let f = m - 1.0;
        let (g, g_low) = two_sum(m, 1.0);
        let t = f / g;
        let (back, back_low) = two_product::<Self, FMA>(t, g);
        let t_low = (((f - back) - back_low) - t * g_low) / g;

        // t² and the sum in brackets.
        let (z, z_low) = two_product::<Self, FMA>(t, t);
        let z_low = (t + t).fma::<FMA>(t_low, z_low);
        let (c, c_low) = two_product::<Self, FMA>(z, C1[0]);
        let tail = z * z * polynomial::<Self, FMA>(z, &P);
        let tail = z.fma::<FMA>(C1[1], z_low.fma::<FMA>(C1[0], tail)) + c_low;
        let (bracket, low) = quick_two_sum(C0[0], c);
        let (bracket, bracket_low) = quick_two_sum(bracket, low + (tail + C0[1]));

        // The logarithm.
        let (l, l_low) = two_product::<Self, FMA>(t, bracket);
        let l_low = t.fma::<FMA>(bracket_low, t_low.fma::<FMA>(bracket, l_low));
        let (log, low) = quick_two_sum(e, l);
        let (log, log_low) = quick_two_sum(log, low + l_low);
        let log = edges(a, log);

        // Its product with y. Beyond the bounds the result is infinite or zero, as it is here.
        let (p, low) = two_product::<Self, FMA>(y, log);
        let p_low = y.fma::<FMA>(log_low, low);
        let p_low = if p.abs() < 2000.0 { p_low } else { 0.0 };
        let p = if p > 2000.0 { 2000.0 } else { p };
        let p = if p < -2000.0 { -2000.0 } else { p };

        // Two to its power: p - n is exact.
        let n = (p + Self::MAGIC) - Self::MAGIC;
        let (part, part_low) = two_sum(p - n, p_low);
        let (r, r_low) = two_product::<Self, FMA>(part, LN2[0]);
        let r_low = part_low.fma::<FMA>(LN2[0], part.fma::<FMA>(LN2[1], r_low));
        let rest = (r * r).fma::<FMA>(polynomial::<Self, FMA>(r, &Q), r_low.fma::<FMA>(r, r_low));
        scaled(1.0 + (r + rest), n)
    }
}
