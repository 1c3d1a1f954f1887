//! Arrays that need no file: from what stands after `name=`.
//!
//! ```text
//! (3, 4)                    0, 1, 2, … in that shape, int64
//! [[1, 2], [3, 4]]  1+2j    these values: int64, float64, complex128, bool or string
//! rand(3, 4)  randn(3, 4)   random, the same for the same --seed, place and shape
//! zeros(3)  ones(3)  full((3, 4), 2.5)  arange(10)  linspace(0, 1, 11)  array([1, 2])
//! ```
//!
//! Each call takes `dtype=`. (The lexer of expressions does not read this: its lists are indices, and its calls compute.)

use std::fmt;

use ndarray::{ArrayD, IxDyn};
use simulcast::types::promote_types;
use simulcast::{AnyArray, Complex, DType, dispatch};
use simulcast_core::format_shape;

use super::word::Word;

/// Random numbers and memory for generated arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// What random numbers begin with.
    pub(super) seed: u64,
    /// The bytes that an array may have.
    pub(super) memory: u64,
}

impl Source {
    /// The array that a word stands for.
    pub(super) fn array(self, word: &Word) -> Result<AnyArray, String> {
        match word {
            Word::Tuple(_) => {
                let shape = shape(std::slice::from_ref(word))?;
                self.fill(DType::I64, &shape, |at| Number::Int(at as i128))
            }
            Word::Call { name, args, named } => self.call(name, args, named),
            Word::Name(name) => {
                Err(format!("`{name}` is no value; a file ends in .npy, .npz or .safetensors"))
            }
            word => self.values(word, None),
        }
    }

    fn call(self, name: &str, args: &[Word], named: &[(String, Word)]) -> Result<AnyArray, String> {
        let mut dtype = None;
        for (key, word) in named {
            match (key.as_str(), word) {
                ("dtype", Word::Name(name) | Word::Text(name)) if dtype.is_none() => {
                    dtype = Some(name.parse::<DType>().map_err(|error| error.to_string())?);
                }
                _ => return Err(format!("`{name}` takes no `{key}=` such as this")),
            }
        }
        let float = dtype.unwrap_or(DType::F64);
        match (name, args) {
            ("rand" | "randn", _) if !float.is_float() => {
                Err(format!("`{name}` makes floating-point numbers, not {float}"))
            }
            ("rand", sizes) => {
                let digits = digits(float);
                self.fill(float, &shape(sizes)?, |at| Number::Float(self.uniform(at, digits)))
            }
            ("randn", sizes) => {
                self.fill(float, &shape(sizes)?, |at| Number::Float(self.normal(at)))
            }
            ("zeros", sizes) => self.fill(float, &shape(sizes)?, |_| Number::Int(0)),
            ("ones", sizes) => self.fill(float, &shape(sizes)?, |_| Number::Int(1)),
            ("full", [sizes, value]) => {
                let (value, own) = number(value).ok_or("`full` takes a shape and a number")?;
                self.fill(dtype.unwrap_or(own), &shape(std::slice::from_ref(sizes))?, |_| value)
            }
            ("array", [values]) => self.values(values, dtype),
            ("arange", [_] | [_, _] | [_, _, _]) => self.arange(args, dtype),
            ("linspace", [_, _] | [_, _, _]) => self.linspace(args, float),
            ("full", _) => Err("`full` takes a shape and a number: full((3, 4), 2.5)".into()),
            ("array", _) => Err("`array` takes a list: array([1, 2])".into()),
            ("arange", _) => {
                Err("`arange` takes a stop; a start and a stop; or these and a step".into())
            }
            ("linspace", _) => Err("`linspace` takes a start, a stop and a count".into()),
            _ => {
                let known = "rand, randn, zeros, ones, full, arange, linspace and array";
                Err(format!("there is no `{name}`; there are {known}"))
            }
        }
    }

    fn arange(self, args: &[Word], dtype: Option<DType>) -> Result<AnyArray, String> {
        let numbers: Option<Vec<_>> = args.iter().map(number).collect();
        let numbers: Vec<Number> =
            numbers.ok_or("`arange` takes numbers")?.iter().map(|(number, _)| *number).collect();
        let (start, stop, step) = match numbers[..] {
            [stop] => (Number::Int(0), stop, Number::Int(1)),
            [start, stop] => (start, stop, Number::Int(1)),
            [start, stop, step, ..] => (start, stop, step),
            [] => return Err("`arange` takes numbers".into()),
        };
        let wrong = "`arange` takes a step other than 0, and finite numbers";
        if let (Number::Int(start), Number::Int(stop), Number::Int(step)) = (start, stop, step) {
            // Integers of 64 bits at most: nothing overflows, and nothing is rounded.
            let (way, stride) = (stop - start, step.abs());
            let way = if step < 0 { -way } else { way };
            let count = (way + stride - 1).checked_div(stride).ok_or(wrong)?.max(0);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let dtype = dtype.unwrap_or(DType::I64);
            return self.fill(dtype, &[count], |at| Number::Int(start + at as i128 * step));
        }
        let (start, stop, step) = (start.real(), stop.real(), step.real());
        let count = ((stop - start) / step).ceil();
        if step == 0.0 || !count.is_finite() {
            return Err(wrong.into());
        }
        // As NumPy counts; what does not fit saturates, and is refused for its size.
        let count = count.max(0.0) as usize;
        let dtype = dtype.unwrap_or(DType::F64);
        self.fill(dtype, &[count], |at| Number::Float(start + at as f64 * step))
    }

    fn linspace(self, args: &[Word], dtype: DType) -> Result<AnyArray, String> {
        let wrong = "`linspace` takes a start, a stop and a count";
        let (start, stop, count) = match args {
            [start, stop] => (start, stop, 50),
            [start, stop, Word::Int(count)] => {
                (start, stop, usize::try_from(*count).map_err(|_| wrong)?)
            }
            _ => return Err(wrong.into()),
        };
        let real = |word| number(word).map(|(number, _)| number.real()).ok_or(wrong);
        let (start, stop) = (real(start)?, real(stop)?);
        let step = (stop - start) / count.saturating_sub(1).max(1) as f64;
        self.fill(dtype, &[count], |at| {
            let last = at + 1 == count && count > 1;
            Number::Float(if last { stop } else { start + at as f64 * step })
        })
    }

    /// The values of a list, a number or a text.
    fn values(self, word: &Word, dtype: Option<DType>) -> Result<AnyArray, String> {
        let (mut shape, mut level) = (Vec::new(), word);
        while let Word::List(items) = level {
            shape.push(items.len());
            match items.first() {
                Some(first) => level = first,
                None => break,
            }
        }
        let mut leaves = Vec::new();
        gather(word, &shape, &mut leaves)?;
        if let Some(Word::Text(_)) = leaves.first() {
            let texts = leaves.iter().map(|leaf| match leaf {
                Word::Text(text) => Ok(text.clone()),
                _ => Err("a list holds either text or numbers".to_owned()),
            });
            if dtype.is_some_and(|dtype| dtype != DType::String) {
                return Err("text is of type string".into());
            }
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            return array(&shape, texts);
        }
        let numbers: Option<Vec<_>> = leaves.iter().map(|leaf| number(leaf)).collect();
        let numbers = numbers.ok_or("a list holds either text or numbers")?;
        let own = numbers.iter().map(|(_, own)| *own);
        let common = own.reduce(|all, own| promote_types(all, own).unwrap_or(DType::C128));
        let dtype = dtype.or(common).unwrap_or(DType::F64);
        self.fill(dtype, &shape, |at| numbers.get(at).map_or(Number::Int(0), |(number, _)| *number))
    }

    /// An array of that type and shape, element by element in row-major order.
    fn fill(
        self,
        dtype: DType,
        shape: &[usize],
        value: impl Fn(usize) -> Number,
    ) -> Result<AnyArray, String> {
        let sizes = shape.iter().filter(|&&size| size != 0);
        let bytes = sizes.copied().try_fold(dtype.size(), usize::checked_mul);
        if bytes.is_none_or(|bytes| bytes as u64 > self.memory) {
            let shown = format_shape(shape);
            return Err(format!("{dtype} {shown} is over the limit of {} bytes", self.memory));
        }
        let count: usize = shape.iter().product();
        if dtype == DType::String {
            return Err("numbers are not of type string".into());
        }
        dispatch!(dtype, T => {
            let values = (0..count).map(|at| {
                let value = value(at);
                T::of(value).ok_or_else(|| format!("{value} is no {dtype}"))
            });
            array(shape, values.collect::<Result<Vec<_>, _>>()?)
        })
    }

    /// The number in a place of the sequence: one mixing of a counter, so that any place can be
    /// had without those before it (`SplitMix64`).
    const fn bits(self, at: usize) -> u64 {
        let counter = (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed.wrapping_add(counter);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1 without 1, of that many binary digits.
    fn uniform(self, at: usize, digits: u32) -> f64 {
        (self.bits(at) >> (64 - digits)) as f64 / (1_u64 << digits) as f64
    }

    /// Of mean 0 and variance 1 (Box and Muller).
    fn normal(self, at: usize) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform(2 * at, 53)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(2 * at + 1, 53)).cos()
    }
}

/// The binary digits of a floating-point type, so that nothing is rounded up to 1.
const fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => half::f16::MANTISSA_DIGITS,
        DType::Bf16 => half::bf16::MANTISSA_DIGITS,
        DType::F32 => f32::MANTISSA_DIGITS,
        _ => f64::MANTISSA_DIGITS,
    }
}

/// A number before it has a type.
#[derive(Clone, Copy, Debug)]
enum Number {
    Int(i128),
    Float(f64),
    Complex(Complex<f64>),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(x) => x.fmt(f),
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Complex(x) => write!(f, "{:?}{:+?}j", x.re, x.im),
        }
    }
}

impl Number {
    fn real(self) -> f64 {
        self.complex().re
    }

    fn complex(self) -> Complex<f64> {
        match self {
            Self::Int(x) => Complex::new(x as f64, 0.0),
            Self::Float(x) => Complex::new(x, 0.0),
            Self::Complex(x) => x,
        }
    }

    /// The number, where it is real.
    fn float(self) -> Option<f64> {
        match self {
            Self::Complex(_) => None,
            real => Some(real.real()),
        }
    }

    /// The number, where it is an integer.
    fn whole(self) -> Option<i128> {
        match self {
            Self::Int(x) => Some(x),
            Self::Float(x) if x.fract() == 0.0 => Some(x as i128),
            _ => None,
        }
    }
}

/// An element type that numbers are converted to.
trait Convert: Sized {
    /// The number as an element, where it is one.
    fn of(number: Number) -> Option<Self>;
}

macro_rules! convert {
    ($($type:ty),* => $convert:expr) => {
        $(impl Convert for $type {
            fn of(number: Number) -> Option<Self> {
                let convert: fn(Number) -> Option<Self> = $convert;
                convert(number)
            }
        })*
    };
}

convert!(bool => |x| Some(x.complex() != Complex::ZERO));
convert!(i8, i16, i32, i64, u8, u16, u32, u64 => |x| x.whole()?.try_into().ok());
convert!(half::f16, half::bf16 => |x| Some(Self::from_f64(x.float()?)));
convert!(f32 => |x| Some(x.float()? as f32));
convert!(f64 => Number::float);
convert!(Complex<f32> => |x| Some(Complex::new(x.complex().re as f32, x.complex().im as f32)));
convert!(Complex<f64> => |x| Some(x.complex()));
convert!(String => |_| None);

/// A number and the type that it has by itself.
fn number(word: &Word) -> Option<(Number, DType)> {
    Some(match *word {
        Word::Bool(x) => (Number::Int(x.into()), DType::Bool),
        Word::Int(x) if i64::try_from(x).is_ok() => (Number::Int(x), DType::I64),
        Word::Int(x) if u64::try_from(x).is_ok() => (Number::Int(x), DType::U64),
        Word::Int(x) => (Number::Float(x as f64), DType::F64),
        Word::Float(x) => (Number::Float(x), DType::F64),
        Word::Complex(re, im) => (Number::Complex(Complex::new(re, im)), DType::C128),
        _ => return None,
    })
}

/// The sizes in a call: `3, 4`, or `(3, 4)`.
pub(super) fn shape(sizes: &[Word]) -> Result<Vec<usize>, String> {
    let sizes = match sizes {
        [Word::Tuple(sizes) | Word::List(sizes)] => sizes,
        sizes => sizes,
    };
    let size = |word: &Word| match word {
        Word::Int(size) => usize::try_from(*size).ok(),
        _ => None,
    };
    let sizes: Option<Vec<usize>> = sizes.iter().map(size).collect();
    sizes.ok_or_else(|| "sizes are numbers from 0 on".to_owned())
}

/// The elements of nested lists, which all have that shape.
fn gather<'a>(word: &'a Word, shape: &[usize], leaves: &mut Vec<&'a Word>) -> Result<(), String> {
    match (word, shape.split_first()) {
        (Word::List(items), Some((size, shape))) if items.len() == *size => {
            items.iter().try_for_each(|item| gather(item, shape, leaves))
        }
        (Word::List(_), _) | (_, Some(_)) => Err("the lists are not all of one length".into()),
        (leaf, None) => {
            leaves.push(leaf);
            Ok(())
        }
    }
}

fn array<T>(shape: &[usize], values: Vec<T>) -> Result<AnyArray, String>
where
    AnyArray: From<ArrayD<T>>,
{
    let array = ArrayD::from_shape_vec(IxDyn(shape), values);
    array.map(AnyArray::from).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Result<AnyArray, String> {
        Source { seed: 0, memory: 1 << 20 }.array(&Word::parse(text)?)
    }

    #[test]
    fn values_have_the_types_that_python_gives_them() {
        let array = |text| made(text).map(|array| format!("{} {:?}", array.dtype(), array.shape()));
        for (text, expected) in [
            ("(2,3)", "int64 [2, 3]"),
            ("()", "int64 []"),
            ("true", "bool []"),
            ("[1, true]", "int64 [2]"),
            ("[1, 2.5]", "float64 [2]"),
            ("[1, 2j]", "complex128 [2]"),
            ("[18446744073709551615]", "uint64 [1]"),
            ("[-1, 18446744073709551615]", "float64 [2]"),
            ("[1-2j, 3]", "complex128 [2]"),
            ("[[], []]", "float64 [2, 0]"),
            ("['a', 'b']", "string [2]"),
            ("full((2, 1), true)", "bool [2, 1]"),
            ("arange(3, dtype=bfloat16)", "bfloat16 [3]"),
            ("arange(0.5, 2)", "float64 [2]"),
            ("arange(5, 1)", "int64 [0]"),
            ("arange(5, 1, -2)", "int64 [2]"),
            ("linspace(0, 1)", "float64 [50]"),
            ("linspace(0, 1, 0)", "float64 [0]"),
            ("rand()", "float64 []"),
            ("zeros((2, 3), dtype=int8)", "int8 [2, 3]"),
        ] {
            assert_eq!(array(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(made("arange(2, 9, 3)"), Ok(ndarray::array![2_i64, 5, 8].into()));
        assert_eq!(made("linspace(1, 2, 3)"), Ok(ndarray::array![1.0, 1.5, 2.0].into()));
    }

    #[test]
    fn random_numbers_are_spread_as_they_should() {
        let mean = |array: &AnyArray, power: i32| {
            let array = array.typed::<f64>().unwrap();
            array.iter().map(|x| x.powi(power)).sum::<f64>() / array.len() as f64
        };
        let uniform = made("rand(100000)").unwrap();
        assert!((mean(&uniform, 1) - 0.5).abs() < 0.005);
        assert!((mean(&uniform, 2) - 1.0 / 3.0).abs() < 0.005);
        let normal = made("randn(100000)").unwrap();
        assert!(mean(&normal, 1).abs() < 0.02 && (mean(&normal, 2) - 1.0).abs() < 0.02);
        assert!((mean(&normal, 4) - 3.0).abs() < 0.2);
        let narrow = made("rand(100000, dtype=bfloat16)").unwrap();
        assert!(narrow.typed::<half::bf16>().unwrap().iter().all(|x| x.to_f32() < 1.0));
        assert_eq!(made("rand(9)"), made("rand(9)"));
        let other = Source { seed: 1, memory: 1 << 20 }.array(&Word::parse("rand(9)").unwrap());
        assert_ne!(made("rand(9)"), other);
    }
}
