//! Elements of 8 bits and fewer that nothing computes with: float8, float4, and integers of 4 and 2
//! bits.
//!
//! A run holds them as codes, one in each byte (of fewer bits, in the lowest). Operators that only
//! move elements move codes; `Cast` and `CastLike` make numbers of codes, and codes of numbers, by
//! way of `f64`; of integers that become shorter ones, the lowest bits are kept. Everything else is
//! refused before anything runs.
//!
//! Rounding and what is too large are by the text of `Cast`. Of two things it leaves open, or says
//! otherwise than the tests that come with it, this is done: NaN has no code in `float4e2m1` and
//! becomes 0, as in those tests; a negative number has none in `float8e8m0` and becomes NaN.

use simulcast::{AnyArray, DType, DTypeKind};

use super::code::{Results, one};
use super::error::NodeError;
use super::node::{Allowed, Inputs, RunNode};
use super::value::{array, dtype};
use crate::ElementType;

/// Whether elements of that type are held as codes.
pub(crate) fn is_code(element: ElementType) -> bool {
    dtype(element).is_none()
}

/// The inputs that elements come from, where an operator only moves them.
pub(crate) fn moved(call: &RunNode, inputs: usize) -> Option<Vec<usize>> {
    // A scatter that folds what meets in one place computes.
    let folds = call.text("reduction").is_some_and(|reduction| reduction != "none");
    let moved = call.row?.moved(inputs);
    (!moved.is_empty() && !folds).then_some(moved)
}

/// `Cast` and `CastLike`, from codes, to codes, or both.
pub(crate) fn cast<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let (from, to) = (call.code(0), call.target());
    if from.is_some() && from == to {
        return Ok(vec![inputs.take(0)?]);
    }
    let view = inputs.view(0)?;
    allowed.room(view.shape(), DType::F64)?;
    let integers =
        matches!(view.dtype().kind(), DTypeKind::Bool | DTypeKind::Signed | DTypeKind::Unsigned);
    if let (None, Some(to)) = (from, to.filter(|to| bits(*to).is_some()))
        && integers
    {
        let wide = allowed.evaluate(&[view], |build, args| build.cast(args[0], DType::I64))?;
        let numbers = wide.typed::<i64>().ok_or("its input is no number")?;
        let codes = numbers.iter().map(|number| lowest(to, *number)).collect();
        return one(array(wide.shape(), codes)?);
    }
    let numbers = match from {
        Some(from) => {
            let codes = view.typed::<u8>().ok_or("its input is not held as codes")?;
            let all: Vec<f64> = (0..=u8::MAX).map(|code| decode(from, code)).collect();
            let number = |code: &u8| all.get(usize::from(*code)).copied().unwrap_or(f64::NAN);
            AnyArray::from(array(view.shape(), codes.iter().map(number).collect())?)
        }
        None => allowed.evaluate(&[view], |build, args| build.cast(args[0], DType::F64))?,
    };
    match to.filter(|to| is_code(*to)) {
        Some(to) => {
            let how = How::of(call)?;
            let codes = numbers.typed::<f64>().ok_or("its input is no number")?;
            let codes = codes.iter().map(|number| encode(to, *number, how)).collect();
            one(array(numbers.shape(), codes)?)
        }
        None => {
            let to = match to.and_then(dtype) {
                Some(to) => to,
                None => inputs.need(1)?.dtype(),
            };
            one(allowed.evaluate(&[numbers.view()], |build, args| build.cast(args[0], to))?)
        }
    }
}

/// How numbers become codes.
#[derive(Clone, Copy, Debug)]
struct How {
    saturate: bool,
    round: Round,
}

#[derive(Clone, Copy, Debug)]
enum Round {
    Up,
    Down,
    Nearest,
}

impl How {
    fn of(call: &RunNode) -> Result<Self, NodeError> {
        let round = match call.text("round_mode") {
            None | Some("up") => Round::Up,
            Some("down") => Round::Down,
            Some("nearest") => Round::Nearest,
            Some(other) => return Err(format!("there is no round_mode {other:?}").into()),
        };
        Ok(Self { saturate: call.flag("saturate", true), round })
    }
}

/// A small float: a sign, an exponent, a mantissa.
struct SmallFloat {
    mantissa: u32,
    bias: i32,
    /// The bit of the sign; those below it are the magnitude.
    sign: u8,
    /// The largest finite magnitude.
    largest: u8,
    /// What a larger one becomes where it is not the largest.
    beyond: u8,
    nan: u8,
    /// Whether the code of -0 is NaN, and the only one.
    unsigned_zero: bool,
}

impl SmallFloat {
    fn of(element: ElementType) -> Option<Self> {
        let (mantissa, bias, sign, largest, beyond, nan) = match element {
            ElementType::F8E4M3FN => (3, 7, 0x80, 0x7e, 0x7f, 0x7f),
            ElementType::F8E4M3FNUZ => (3, 8, 0x80, 0x7f, 0x80, 0x80),
            ElementType::F8E5M2 => (2, 15, 0x80, 0x7b, 0x7c, 0x7e),
            ElementType::F8E5M2FNUZ => (2, 16, 0x80, 0x7f, 0x80, 0x80),
            ElementType::F4E2M1 => (1, 1, 0x8, 0x7, 0x7, 0x0),
            _ => return None,
        };
        let unsigned_zero = nan == sign;
        Some(Self { mantissa, bias, sign, largest, beyond, nan, unsigned_zero })
    }

    /// The number of a magnitude, as if all of them were finite.
    fn number(&self, magnitude: u8) -> f64 {
        let one = 1 << self.mantissa;
        let (exponent, fraction) = (i32::from(magnitude) / one, i32::from(magnitude) % one);
        let (exponent, whole) = if exponent == 0 { (1, 0) } else { (exponent, one) };
        let power = exponent - self.bias - self.mantissa.cast_signed();
        f64::from(whole + fraction) * 2_f64.powi(power)
    }

    fn decode(&self, code: u8) -> f64 {
        let (is_negative, magnitude) = (code & self.sign != 0, code & (self.sign - 1));
        let number = match magnitude {
            0 if is_negative && self.unsigned_zero => f64::NAN,
            finite if finite <= self.largest => self.number(finite),
            beyond if beyond == self.beyond && beyond != self.nan => f64::INFINITY,
            _ => f64::NAN,
        };
        if is_negative { -number } else { number }
    }

    fn encode(&self, number: f64, saturate: bool) -> u8 {
        let magnitude = match number.abs() {
            nan if nan.is_nan() => self.nan,
            finite => {
                // The last that is not above it, then the nearer of it and the next; of both, the even one.
                let below =
                    (1..=self.largest).take_while(|m| self.number(*m) <= finite).count() as u8;
                let twice = self.number(below) + self.number(below + 1);
                let above = 2.0 * finite > twice || (2.0 * finite == twice && below % 2 == 1);
                match below + u8::from(above) {
                    large if large > self.largest && saturate => self.largest,
                    large if large > self.largest => self.beyond,
                    own => own,
                }
            }
        };
        let unsigned = self.unsigned_zero && (magnitude == 0 || magnitude == self.nan);
        if number.is_sign_negative() && !unsigned { magnitude | self.sign } else { magnitude }
    }
}

/// The number of a code.
fn decode(element: ElementType, code: u8) -> f64 {
    if let Some(layout) = SmallFloat::of(element) {
        return layout.decode(code);
    }
    match element {
        ElementType::F8E8M0 if code == u8::MAX => f64::NAN,
        ElementType::F8E8M0 => 2_f64.powi(i32::from(code) - 127),
        ElementType::U4 => f64::from(code & 0xf),
        ElementType::U2 => f64::from(code & 0x3),
        ElementType::I4 => f64::from((code << 4).cast_signed() >> 4),
        _ => f64::from((code << 6).cast_signed() >> 6),
    }
}

/// The code of a number.
fn encode(element: ElementType, number: f64, how: How) -> u8 {
    if let Some(layout) = SmallFloat::of(element) {
        return layout.encode(number, how.saturate);
    }
    match element {
        ElementType::F8E8M0 => power_of_two(number, how),
        // The fraction goes, then the bits that do not fit.
        _ => lowest(element, number as i64),
    }
}

/// How many bits an integer has that is held as a code.
fn bits(element: ElementType) -> Option<u32> {
    match element {
        ElementType::U4 | ElementType::I4 => Some(4),
        ElementType::U2 | ElementType::I2 => Some(2),
        _ => None,
    }
}

/// The lowest bits of an integer, as many as a code has.
fn lowest(element: ElementType, number: i64) -> u8 {
    let all = bits(element).map_or(u8::MAX, |bits| (1 << bits) - 1);
    number.to_le_bytes()[0] & all
}

/// A code of `float8e8m0`: only an exponent, from 2^-127 to 2^127.
fn power_of_two(number: f64, how: How) -> u8 {
    let nan = u8::MAX;
    let beyond = |code: u8| if how.saturate { code } else { nan };
    match number {
        number if number.is_nan() || number < 0.0 => nan,
        number if number < 2_f64.powi(-127) => beyond(0),
        number if number >= 2_f64.powi(128) => beyond(254),
        number => {
            // Within these bounds the exponent of the `f64` is that of the number.
            let below = (number.to_bits() >> 52) as i32 - 1023;
            let share = number / 2_f64.powi(below);
            let above = match how.round {
                Round::Up => share > 1.0,
                Round::Nearest => share >= 1.5,
                Round::Down => false,
            };
            match below + i32::from(above) {
                128 => beyond(254),
                power => (power + 127) as u8,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [ElementType; 5] = [
        ElementType::F8E4M3FN,
        ElementType::F8E4M3FNUZ,
        ElementType::F8E5M2,
        ElementType::F8E5M2FNUZ,
        ElementType::F4E2M1,
    ];

    /// The numbers that the documents on float8 and float4 give.
    #[test]
    fn the_largest_and_the_least_are_those_of_the_documents() {
        let expected = [
            (448.0, 2_f64.powi(-9)),
            (240.0, 2_f64.powi(-10)),
            (57344.0, 2_f64.powi(-16)),
            (57344.0, 2_f64.powi(-17)),
            (6.0, 0.5),
        ];
        for (element, (most, least)) in FLOATS.into_iter().zip(expected) {
            let all: Vec<f64> =
                (0..SmallFloat::of(element).unwrap().sign).map(|c| decode(element, c)).collect();
            let finite = || all.iter().copied().filter(|number| number.is_finite());
            assert_eq!(finite().fold(0.0, f64::max), most, "{element}");
            assert_eq!(finite().filter(|x| *x > 0.0).fold(f64::MAX, f64::min), least, "{element}");
        }
    }

    #[test]
    fn every_number_of_a_code_has_that_code() {
        for saturate in [true, false] {
            for round in [Round::Up, Round::Down, Round::Nearest] {
                let how = How { saturate, round };
                let others = [
                    ElementType::F8E8M0,
                    ElementType::U4,
                    ElementType::I4,
                    ElementType::U2,
                    ElementType::I2,
                ];
                for element in FLOATS.into_iter().chain(others) {
                    let codes = 1_u32 << element.bits().unwrap();
                    for code in (0..codes).map(|code| code as u8) {
                        let number = decode(element, code);
                        let again = decode(element, encode(element, number, how));
                        match number.is_infinite() && saturate {
                            true => assert_eq!(again.abs(), 57344.0),
                            false => assert_eq!(
                                again.to_bits() << 1,
                                number.to_bits() << 1,
                                "{element} {code}"
                            ),
                        }
                    }
                }
            }
        }
    }
}
