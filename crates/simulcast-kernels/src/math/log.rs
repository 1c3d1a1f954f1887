//! Logarithms: `log`, `log2`, `log10` and `log1p`.
//!
//! ```text
//! x = 2^e (1 + f)                 1 + f between the roots of 1/2 and 2
//! log (1 + f) = f + c             c = -f²/2 + …, much smaller than f, so that its roundings hardly count
//! log x = e ln 2 + (f + c)        ln 2 in two parts, the first short enough for an exact product
//! ```

use crate::math::lane::{Lane, polynomial, quick_two_sum, split, two_sum};

/// The constants of a type, and its series.
pub(super) trait Logarithm: Lane {
    /// ln 2 and log10 2 in two parts each, the first short.
    const LN2: [Self; 2];
    const LOG10_2: [Self; 2];
    /// log2 e and log10 e in two parts each, the first full.
    const LOG2_E: [Self; 2];
    const LOG10_E: [Self; 2];

    /// `log (1 + f) - f + rest`.
    fn correction<const FMA: bool>(f: Self, rest: Self) -> Self;
}

impl Logarithm for f32 {
    const LN2: [Self; 2] = [0.693_115_23, 3.194_618_3e-5];
    const LOG10_2: [Self; 2] = [0.301_025_4, 4.605_039e-6];
    const LOG2_E: [Self; 2] = [std::f32::consts::LOG2_E, 1.925_963e-8];
    const LOG10_E: [Self; 2] = [std::f32::consts::LOG10_E, -1.010_305e-8];

    /// `f³ P(f) - f²/2`, with P by the Remez exchange.
    #[inline(always)]
    fn correction<const FMA: bool>(f: Self, rest: Self) -> Self {
        const P: [f32; 9] = [
            0.333_333_13,
            -0.250_000_1,
            0.200_021_18,
            -0.166_679_95,
            0.142_195_55,
            -0.124_056,
            0.118_881_576,
            -0.116_755_92,
            0.067_465_88,
        ];
        let slope = f.fma::<FMA>(split::<Self, FMA>(f, &P), -0.5);
        (f * f).fma::<FMA>(slope, rest)
    }
}

impl Logarithm for f64 {
    const LN2: [Self; 2] = [0.693_147_180_559_208_2, 7.371_002_565_167_799e-13];
    const LOG10_2: [Self; 2] = [0.301_029_995_663_611_77, 3.694_239_077_158_931e-13];
    const LOG2_E: [Self; 2] = [std::f64::consts::LOG2_E, 2.035_527_374_093_103_3e-17];
    const LOG10_E: [Self; 2] = [std::f64::consts::LOG10_E, 1.098_319_650_216_765e-17];

    /// `s (f²/2 + R) - f²/2` with `s = f / (2 + f)` and `R = 2 artanh(s) / s - 2`, which is even in s
    /// and converges much faster than a series in f; its polynomial is by the Remez exchange.
    #[inline(always)]
    fn correction<const FMA: bool>(f: Self, rest: Self) -> Self {
        const R: [f64; 7] = [
            0.666_666_666_666_673_4,
            0.399_999_999_994_143_54,
            0.285_714_287_424_672_64,
            0.222_221_985_643_250_6,
            0.181_835_648_203_832_4,
            0.153_140_370_838_082_16,
            0.147_960_923_334_320_95,
        ];
        let s = f / (2.0 + f);
        let z = s * s;
        let half = 0.5 * f * f;
        let r = z * polynomial::<Self, FMA>(z, &R);
        s.fma::<FMA>(half + r, rest - half)
    }
}

/// What belongs to arguments that are not positive and finite, else `y`.
#[inline(always)]
fn edges<T: Lane>(x: T, y: T) -> T {
    let refused = if x == T::of(0.0) { -T::INFINITY } else { T::NAN };
    let y = if x > T::of(0.0) { y } else { refused };
    if x == T::INFINITY { x } else { y }
}

/// `e * step + (log m) * unit` for `x = m 2^e`, with `step` and `unit` in two parts.
#[inline(always)]
fn to_base<T: Logarithm, const FMA: bool>(x: T, step: [T; 2], unit: [T; 2]) -> T {
    let (e, m) = x.parts();
    let f = m - T::of(1.0);
    // Nothing is added by this zero, whatever the sign.
    let (log, rest) = quick_two_sum(f, T::correction::<FMA>(f, T::of(-0.0)));
    let low = log.fma::<FMA>(unit[1], rest * unit[0]);
    let low = e.fma::<FMA>(step[1], low);
    let y = e.fma::<FMA>(step[0], log.fma::<FMA>(unit[0], low));
    edges(x, y)
}

/// How many units in the last place each function may be away, for `f32` and for `f64`.
#[cfg(test)]
pub(super) const ULP: [(&str, [f64; 2]); 4] =
    [("log", [1.0, 1.0]), ("log2", [1.5, 1.5]), ("log10", [1.5, 1.5]), ("log1p", [1.5, 1.5])];

/// The natural logarithm, within 1 ULP.
#[inline(always)]
pub(super) fn log<T: Logarithm, const FMA: bool>(x: T) -> T {
    let (e, m) = x.parts();
    let f = m - T::of(1.0);
    let small = T::correction::<FMA>(f, e * T::LN2[1]);
    edges(x, e.fma::<FMA>(T::LN2[0], f + small))
}

/// The logarithm to base 2, within 1.5 ULP.
#[inline(always)]
pub(super) fn log2<T: Logarithm, const FMA: bool>(x: T) -> T {
    to_base::<T, FMA>(x, [T::of(1.0), T::of(0.0)], T::LOG2_E)
}

/// The logarithm to base 10, within 1.5 ULP.
#[inline(always)]
pub(super) fn log10<T: Logarithm, const FMA: bool>(x: T) -> T {
    to_base::<T, FMA>(x, T::LOG10_2, T::LOG10_E)
}

/// `log (1 + x)`, within 1.5 ULP: what the sum 1 + x loses is added to its logarithm.
#[inline(always)]
pub(super) fn log1p<T: Logarithm, const FMA: bool>(x: T) -> T {
    let (sum, lost) = two_sum(T::of(1.0), x);
    let (e, m) = sum.parts();
    let f = m - T::of(1.0);
    let small = T::correction::<FMA>(f, e.fma::<FMA>(T::LN2[1], lost / sum));
    let y = edges(sum, e.fma::<FMA>(T::LN2[0], f + small));
    // Of a negative zero, too.
    if x == T::of(0.0) { x } else { y }
}
