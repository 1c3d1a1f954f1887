//! Payne-Hanek reduction: angles of any size, reduced with the bits of 1/π that their exponent selects.
//!
//! ```text
//! |x| = m 2^e             m an integer of 53 bits
//! |x|/π mod 2 = m W       W is 1/π without the bits whose product with m is a multiple of 2, truncated
//!                         to 192 bits: the rest changes the 138th bit of the product
//! ```
//!
//! No double is closer to a multiple of π/2 than 2^-62, so that enough bits are left. The reduction is scalar: it is rarely
//! needed.

use crate::math::lane::{quick_two_sum, two_product};
use crate::math::trig::{sine, tangent};

/// The bits of 1/π, after 64 zeros of its whole part.
const INVERSE: [u64; 20] = [
    0x0000_0000_0000_0000,
    0x517c_c1b7_2722_0a94,
    0xfe13_abe8_fa9a_6ee0,
    0x6db1_4acc_9e21_c820,
    0xff28_b1d5_ef5d_e2b0,
    0xdb92_371d_2126_e970,
    0x0324_9775_04e8_c90e,
    0x7f0e_f58e_5894_d39f,
    0x7441_1afa_975d_a242,
    0x74ce_3813_5a2f_bf20,
    0x9cc8_eb1c_c1a9_9cfa,
    0x4e42_2fc5_defc_941d,
    0x8ffc_4bff_ef02_cc07,
    0xf797_88c5_ad05_368f,
    0xb69b_3f67_93e5_84db,
    0xa7a3_1fb3_4f2f_f516,
    0xba93_dd63_f5f2_f8bd,
    0x9e83_9cfb_c529_4975,
    0x35fd_afd8_8fc6_ae84,
    0x2b01_9823_7e3d_b5d5,
];

/// `(odd, r, rest)` with `|x| = n π + r + rest`, where n is the integer nearest to |x|/π, or, for
/// `half`, the integer and a half; `odd` says whether the integer is. For finite numbers from 2^-10 on.
#[inline(never)]
fn reduced(x: f64, half: bool) -> (bool, f64, f64) {
    const PI: [f64; 2] = [std::f64::consts::PI, 1.224_646_799_147_353_2e-16];
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1) | 1 << 52;
    // The exponent of the last place is the field less 1075; the bit before that is the first that
    // counts, after the 64 zeros.
    let start = ((bits >> 52 & 0x7ff) as usize).saturating_sub(1075 + 1 - 64);
    let (word, shift) = (start / 64, start % 64);
    let window = |i: usize| {
        let at = |i: usize| u128::from(INVERSE.get(word + i).copied().unwrap_or(0));
        (at(i) << 64 | at(i + 1)) >> (64 - shift) & u128::from(u64::MAX)
    };
    // The product modulo 2^192: its first bit counts ones, the others are the fraction.
    let m = u128::from(fraction);
    let low = m * window(2);
    let middle = m * window(1) + (low >> 64);
    let high = (m * window(0)).wrapping_add(middle >> 64);
    let top = high << 64 | middle & u128::from(u64::MAX);
    let (odd, fraction) = (top >> 127 == 1, top << 1 | (low >> 63 & 1));
    let up = fraction >> 127 == 1;
    // For the nearest integer the fraction is signed; for the one and a half, the half is taken off,
    // which flips the first bit.
    let (odd, signed) = if half {
        (odd, (fraction ^ 1 << 127).cast_signed())
    } else {
        (odd != up, fraction.cast_signed())
    };
    let near = signed as f64;
    let rest = signed.wrapping_sub(near as i128) as f64;
    let unit = 1.0 / (1_u128 << 127) as f64 / 2.0;
    let (near, rest) = (near * unit, rest * unit);
    let (product, lost) = two_product::<f64, false>(near, PI[0]);
    let (r, rest) = quick_two_sum(product, lost + near * PI[1] + rest * PI[0]);
    (odd, r, rest)
}

/// The sine of any angle but the smallest, within 2 ULP.
pub(super) fn sin(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (odd, r, rest) = reduced(x, false);
    let y = sine::<false>(r, rest);
    if odd != x.is_sign_negative() { -y } else { y }
}

/// The cosine of any angle but the smallest, within 2 ULP.
pub(super) fn cos(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (odd, r, rest) = reduced(x, true);
    let y = sine::<false>(r, rest);
    if odd { y } else { -y }
}

/// The tangent of any angle but the smallest, within 1.5 ULP.
pub(super) fn tan(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (_, r, rest) = reduced(x, false);
    let y = if r.abs() <= std::f64::consts::FRAC_PI_4 {
        tangent::<false>(r, rest, false)
    } else {
        let (_, r, rest) = reduced(x, true);
        tangent::<false>(r, rest, true)
    };
    if x.is_sign_negative() { -y } else { y }
}
