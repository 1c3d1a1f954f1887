//! The bounds, asserted: against recorded answers, and of `f32` against doubles.

use std::fmt::{Debug, LowerHex};
use std::path::Path;

use rayon::prelude::*;
use serde_json::Value;

use super::{Real, erf, exp, library, log, pow, trig};
use crate::level::{Kind, Level};

/// A float whose results are compared.
trait Tested: Real + Copy + Debug + 'static {
    const NAME: &'static str;
    /// Its place in a bound.
    const COLUMN: usize;
    fn of_hex(text: &str) -> Self;
    /// Its place among all numbers; zeros have neighbouring places.
    fn place(self) -> i64;
    fn is_nan(self) -> bool;
    fn bits(self) -> impl LowerHex;
}

macro_rules! tested {
    ($($type:ident $bits:ident $signed:ident $column:literal)*) => { $(
        impl Tested for $type {
            const NAME: &'static str = stringify!($type);
            const COLUMN: usize = $column;

            fn of_hex(text: &str) -> Self {
                match text {
                    "nan" => Self::NAN,
                    _ => Self::from_bits($bits::from_str_radix(text, 16).unwrap()),
                }
            }

            fn place(self) -> i64 {
                let bits = self.to_bits().cast_signed();
                i64::from(if bits < 0 { $signed::MIN - bits } else { bits })
            }

            fn is_nan(self) -> bool {
                self.is_nan()
            }

            fn bits(self) -> impl LowerHex {
                self.to_bits()
            }
        }
    )* };
}

tested!(f32 u32 i32 0 f64 u64 i64 1);

/// Every function with its bounds.
fn bounds() -> Vec<(&'static str, [f64; 2])> {
    [&exp::ULP[..], &log::ULP, &trig::ULP, &erf::ULP, &pow::ULP, &library::ULP].concat()
}

fn bound<T: Tested>(name: &str) -> f64 {
    bounds().into_iter().find(|one| one.0 == name).unwrap().1[T::COLUMN]
}

/// A function over slices; `y` is the second argument of those that have one.
#[inline(always)]
fn each<T: Real, const FMA: bool>(name: &str, x: &[T], y: &[T], to: &mut [T]) {
    macro_rules! loops {
        ($($one:ident)*; $($library:ident)*; $($pair:ident)*) => {
            match name {
                $(stringify!($one) => to.iter_mut().zip(x).for_each(|(to, x)| *to = x.$one::<FMA>()),)*
                $(stringify!($library) => to.iter_mut().zip(x).for_each(|(to, x)| *to = x.$library()),)*
                $(stringify!($pair) =>
                    to.iter_mut().zip(x.iter().zip(y)).for_each(|(to, (x, y))| *to = x.$pair(*y)),)*
                "pow" =>
                    to.iter_mut().zip(x.iter().zip(y)).for_each(|(to, (x, y))| *to = x.pow::<FMA>(*y)),
                "sin" => T::sin_tile::<FMA>(x, to),
                "cos" => T::cos_tile::<FMA>(x, to),
                _ => panic!("no function of the name {name}"),
            }
        };
    }
    loops! {
        exp exp2 expm1 log log2 log10 log1p tanh sigmoid erf;
        tan asin acos atan sinh cosh asinh acosh atanh cbrt;
        atan2 hypot
    }
}

/// # Safety
///
/// The machine has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,movbe")]
unsafe fn each_avx2<T: Real>(name: &str, x: &[T], y: &[T], to: &mut [T]) {
    each::<T, true>(name, x, y, to);
}

fn at_level<T: Tested>(level: Level, name: &str, x: &[T], y: &[T]) -> Vec<T> {
    let mut to = x.to_vec();
    match level.kind() {
        Kind::Baseline => each::<T, false>(name, x, y, &mut to),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { each_avx2(name, x, y, &mut to) },
    }
    to
}

/// The worst error of one function.
#[derive(Clone, Default)]
struct Worst {
    error: f64,
    at: String,
}

impl Worst {
    fn see(&mut self, error: f64, at: impl FnOnce() -> String) {
        if error > self.error {
            *self = Self { error, at: at() };
        }
    }
}

fn recorded() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/functions.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hold<T: Tested>(record: &Value) {
    let name = record["op"].as_str().unwrap();
    let (mut x, mut y, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for point in record["points"].as_array().unwrap() {
        let words: Vec<&str> = point.as_str().unwrap().split(' ').collect();
        let (arguments, [value, rest]) = words.split_last_chunk().unwrap();
        x.push(T::of_hex(arguments[0]));
        y.push(T::of_hex(arguments[arguments.len() - 1]));
        expected.push((T::of_hex(value), rest.parse::<f64>().unwrap() / 1000.0));
    }
    for level in Level::available() {
        let mut worst = Worst::default();
        let results = at_level(level, name, &x, &y);
        for (i, (&got, &(value, rest))) in results.iter().zip(&expected).enumerate() {
            let error = match (got.is_nan(), value.is_nan()) {
                (true, true) => 0.0,
                (false, false) if got == value && got.place() != value.place() => f64::INFINITY,
                (false, false) => (got.place().wrapping_sub(value.place()) as f64 - rest).abs(),
                _ => f64::INFINITY,
            };
            worst.see(error, || {
                let (x, y) = (x[i], y[i]);
                format!("{x:?} ({:x}), {y:?}: {got:?} is not {value:?}", x.bits())
            });
        }
        let (bound, type_name) = (bound::<T>(name), T::NAME);
        println!("{name} of {type_name} at {}: {:.3} of {bound}", level.name(), worst.error);
        assert!(
            // What is recorded is itself rounded to thousandths.
            worst.error <= bound + 0.0005,
            "{name} of {type_name} at {}: {} ULP at {}",
            level.name(),
            worst.error,
            worst.at
        );
    }
}

#[test]
fn every_recorded_value_is_within_the_bound_at_every_level() {
    let all = recorded();
    for (name, _) in bounds() {
        assert_eq!(all.iter().filter(|one| one["op"] == name).count(), 2, "{name}");
    }
    for record in &all {
        match record["type"].as_str().unwrap() {
            "f32" => hold::<f32>(record),
            _ => hold::<f64>(record),
        }
    }
}

/// How far a result is from the exact one, in units of the last place there.
fn error(got: f32, exact: f64) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let most = 128_f64.exp2();
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    let got = f64::from(got).clamp(-most, most);
    (got - exact.clamp(-most, most)).abs() / f64::from(exponent - 23).exp2()
}

/// A function of `f32`, and the same of doubles by another hand.
type Pair = (&'static str, fn(f64) -> f64);

unsafe extern "C" {
    /// C's error function: the standard library links it, and has no name for it.
    safe fn erf(x: f64) -> f64;
}

const BY_ANOTHER_HAND: [Pair; 12] = [
    ("exp", f64::exp),
    ("exp2", f64::exp2),
    ("expm1", f64::exp_m1),
    ("log", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tanh", f64::tanh),
    ("sigmoid", |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }),
    ("erf", |x| erf(x)),
];

/// The logarithm of how many arguments are looked at together.
const BLOCK: u32 = 14;

/// Every `step`th `f32` through a function, at every level.
fn sweep(name: &str, exact: impl Fn(f64) -> f64 + Sync, step: usize) {
    let levels = Level::available();
    let blocks: Vec<u32> = (0..=u32::MAX).step_by(step << BLOCK).collect();
    let block = |mut worst: Vec<Worst>, first: &u32| {
        let x: Vec<f32> = (0..1_u32 << BLOCK)
            .map(|i| f32::from_bits(first.wrapping_add(i.wrapping_mul(step as u32))))
            .collect();
        let expected: Vec<f64> = x.iter().map(|&x| exact(f64::from(x))).collect();
        for (&level, worst) in levels.iter().zip(&mut worst) {
            for (i, got) in at_level(level, name, &x, &x).into_iter().enumerate() {
                let (x, value) = (x[i], expected[i]);
                worst.see(error(got, value), || format!("{x:?}: {got:?} is not {value:?}"));
            }
        }
        worst
    };
    let none = || vec![Worst::default(); levels.len()];
    let either = |one: Vec<Worst>, other: Vec<Worst>| {
        let pairs = one.into_iter().zip(other);
        pairs.map(|(one, other)| if other.error > one.error { other } else { one }).collect()
    };
    let worst = blocks.par_iter().fold(none, block).reduce(none, either);
    for (level, worst) in levels.iter().zip(worst) {
        println!("{name} at {}: {:.4} ULP at {}", level.name(), worst.error, worst.at);
        assert!(worst.error <= bound::<f32>(name), "{name}: {} ULP at {}", worst.error, worst.at);
    }
}

/// An odd step, so that all digits come up: some 50,000 arguments of a function.
const STEP: usize = 0x1_ffff;

#[test]
fn single_precision_is_within_the_bound_of_double_precision() {
    for (name, exact) in BY_ANOTHER_HAND {
        sweep(name, exact, STEP);
    }
}

#[test]
#[ignore = "all 2^32 arguments of every function: minutes, in release"]
fn single_precision_is_within_the_bound_everywhere() {
    for (name, exact) in BY_ANOTHER_HAND {
        sweep(name, exact, 1);
    }
}
