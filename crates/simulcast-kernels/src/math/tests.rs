//! The bounds, asserted: against recorded answers, and of `f32` against doubles.

use std::fmt::{Debug, LowerHex};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;
use simulcast_threads::{for_each_part, share, threads};

use super::{Real, cbrt_hypot, exp, hyperbolic, inverse_trig, log, pow, trig};
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};

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
    let most = [&exp::ULP[..], &log::ULP, &trig::ULP, &crate::math::erf::ULP, &pow::ULP].concat();
    [&most[..], &hyperbolic::ULP, &inverse_trig::ULP, &cbrt_hypot::ULP].concat()
}

fn bound<T: Tested>(name: &str) -> f64 {
    bounds().into_iter().find(|one| one.0 == name).unwrap().1[T::COLUMN]
}

/// As what is yet to be written. What is there may not be replaced by nothing.
#[inline(always)]
fn unwritten<T>(to: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: the same places; tiles write elements alone.
    unsafe { &mut *(std::ptr::from_mut(to) as *mut [MaybeUninit<T>]) }
}

/// A function over slices; `y` is the second argument of those that have one.
#[inline(always)]
fn each<T: Real, const FMA: bool>(name: &str, x: &[T], y: &[T], to: &mut [T]) {
    macro_rules! loops {
        ($($one:ident)*; $($tile:ident $function:ident)*; $($pair:ident)*) => {
            match name {
                $(stringify!($one) => to.iter_mut().zip(x).for_each(|(to, x)| *to = x.$one::<FMA>()),)*
                $(stringify!($pair) =>
                    to.iter_mut().zip(x.iter().zip(y)).for_each(|(to, (x, y))| *to = x.$pair::<FMA>(*y)),)*
                $(stringify!($tile) => {
                    let tiles = x.chunks(128).zip(to.chunks_mut(128));
                    tiles.for_each(|(x, to)| T::$function::<FMA>(|at| x[at], unwritten(to)));
                })*
                _ => panic!("no function of the name {name}"),
            }
        };
    }
    loops! {
        exp2 expm1 log log2 log10 log1p tanh sigmoid erf asin acos atan sinh cosh asinh acosh atanh cbrt;
        exp exp_tile sin sin_tile cos cos_tile tan tan_tile;
        pow atan2 hypot
    }
}

compiled_for_levels! {
    /// # Safety
    ///
    /// The machine has the features.
    unsafe fn each_avx2<T: Real>(name: &str, x: &[T], y: &[T], to: &mut [T]) {
        each::<T, true>(name, x, y, to);
    }
}

fn at_level<T: Tested>(level: Level, name: &str, x: &[T], y: &[T], to: &mut [T]) {
    match level.kind() {
        Kind::Baseline => each::<T, false>(name, x, y, to),
        // SAFETY: a `Level` exists only where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { each_avx2(name, x, y, to) },
    }
}

/// The worst error of one function, and where it is.
#[derive(Clone, Copy, Debug, Default)]
struct Worst<At> {
    error: f64,
    at: At,
}

impl<At> Worst<At> {
    /// Often called: near 1 the error of `exp` grows with every argument.
    fn see(&mut self, error: f64, at: At) {
        if error > self.error {
            *self = Self { error, at };
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
        let mut worst = Worst::<usize>::default();
        let mut results = x.clone();
        at_level(level, name, &x, &y, &mut results);
        for (i, (&got, &(value, rest))) in results.iter().zip(&expected).enumerate() {
            let error = match (got.is_nan(), value.is_nan()) {
                (true, true) => 0.0,
                (false, false) if got == value && got.place() != value.place() => f64::INFINITY,
                (false, false) => (got.place().wrapping_sub(value.place()) as f64 - rest).abs(),
                _ => f64::INFINITY,
            };
            worst.see(error, i);
        }
        let (bound, type_name) = (bound::<T>(name), T::NAME);
        println!("{name} of {type_name} at {}: {:.3} of {bound}", level.name(), worst.error);
        assert!(
            // What is recorded is itself rounded to thousandths.
            worst.error <= bound + 0.0005,
            "{name} of {type_name} at {}: {} ULP at {:?} ({:x}), {:?}: {:?} is not {:?}",
            level.name(),
            worst.error,
            x[worst.at],
            x[worst.at].bits(),
            y[worst.at],
            results[worst.at],
            expected[worst.at].0
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, and Miri reads half a megabyte of answers for too long")]
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

/// Every other element is out of the usual, and the rest must not tell.
fn hold_among_others<T: Tested>(values: impl Fn(f64) -> T) {
    for name in ["exp", "sin", "cos", "tan"] {
        for level in Level::available() {
            let usual: Vec<T> = (0..1000).map(|n| values(f64::from(n) * 0.087 - 43.5)).collect();
            let others = [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e30, -1e30, -745.0, 90.0];
            let mix = |(n, &x): (usize, &T)| match n % 2 {
                0 => x,
                _ => values(others[n / 2 % others.len()]),
            };
            let mixed: Vec<T> = usual.iter().enumerate().map(mix).collect();
            let (mut alone, mut among) = (usual.clone(), usual.clone());
            at_level(level, name, &usual, &usual, &mut alone);
            at_level(level, name, &mixed, &mixed, &mut among);
            for n in (0..usual.len()).step_by(2) {
                let (level, x) = (level.name(), usual[n]);
                assert_eq!(alone[n].place(), among[n].place(), "{name} of {x:?} at {level}");
            }
        }
    }
}

#[test]
fn a_result_does_not_depend_on_its_neighbours() {
    hold_among_others(|x| x as f32);
    hold_among_others(|x| x);
}

/// How far a result is from the exact one, in units of the last place there.
fn error(got: f32, exact: f64) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let most = 128_f64.exp2();
    let exponent = ((exact.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    let got = f64::from(got).clamp(-most, most);
    let unit = f64::from_bits(u64::from((1023 + exponent - 23).unsigned_abs()) << 52);
    (got - exact.clamp(-most, most)).abs() / unit
}

/// A function of `f32`, and the same of doubles by another hand.
type Pair = (&'static str, fn(f64) -> f64);

unsafe extern "C" {
    /// C's functions: the standard library links them, and has no name for them, or formulas of its own.
    safe fn erf(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

const BY_ANOTHER_HAND: [Pair; 22] = [
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
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("asinh", |x| asinh(x)),
    ("acosh", |x| acosh(x)),
    ("atanh", |x| atanh(x)),
    ("cbrt", f64::cbrt),
];

/// The logarithm of how many arguments are looked at together.
const BLOCK: u32 = 14;

/// What a thread computes into, again and again.
#[derive(Clone)]
struct Room {
    x: Vec<f32>,
    exact: Vec<f64>,
    got: Vec<f32>,
    /// The argument, the result and what it should be.
    worst: Vec<Worst<(f32, f32, f64)>>,
}

/// Every `step`th `f32` through a function, at every level that has a loop of its own here.
fn sweep(name: &str, exact: impl Fn(f64) -> f64 + Sync, step: usize) {
    let levels: Vec<Level> = Level::available().into_iter().take(2).collect();
    let blocks: Vec<u32> = (0..=u32::MAX).step_by(step << BLOCK).collect();
    let block = |mut room: Room, first: &u32| {
        for (i, (x, value)) in (0_u32..).zip(room.x.iter_mut().zip(&mut room.exact)) {
            *x = f32::from_bits(first.wrapping_add(i.wrapping_mul(step as u32)));
            *value = exact(f64::from(*x));
        }
        for (&level, worst) in levels.iter().zip(&mut room.worst) {
            at_level(level, name, &room.x, &room.x, &mut room.got);
            for ((&x, &got), &value) in room.x.iter().zip(&room.got).zip(&room.exact) {
                worst.see(error(got, value), (x, got, value));
            }
        }
        room
    };
    let room = Room {
        x: vec![0.0; 1 << BLOCK],
        exact: vec![0.0; 1 << BLOCK],
        got: vec![0.0; 1 << BLOCK],
        worst: vec![Worst::default(); levels.len()],
    };
    let worst = Mutex::new(room.worst.clone());
    let parts = blocks.len().min(16 * threads());
    for_each_part(parts, None, &|part| {
        let begin = |part| share(blocks.len(), part, parts);
        let room = blocks[begin(part)..begin(part + 1)].iter().fold(room.clone(), block);
        let mut worst = worst.lock().unwrap();
        worst.iter_mut().zip(room.worst).for_each(|(one, other)| one.see(other.error, other.at));
    });
    let worst = worst.into_inner().unwrap();
    for (level, Worst { error, at: (x, got, value) }) in levels.iter().zip(worst) {
        let level = level.name();
        let told = format!("{name} at {level}: {error:.4} ULP at {x:?}: {got:?} is not {value:?}");
        println!("{told}");
        assert!(error <= bound::<f32>(name), "{told}");
    }
}

/// An odd step, so that all digits come up: some 50,000 arguments of a function.
const STEP: usize = 0x1_ffff;

#[test]
#[cfg_attr(miri, ignore = "safe code, and slow")]
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

#[test]
fn closures_compute_what_loops_without_fused_products_do() {
    fn compare<T: Tested + super::Float>(numbers: &[T]) {
        let mut to = numbers.to_vec();
        macro_rules! same {
            ($($name:ident)*) => { $(
                each::<T, false>(stringify!($name), numbers, numbers, &mut to);
                for (&x, &y) in numbers.iter().zip(&to) {
                    let own = super::$name(x);
                    let same = own.place() == y.place() || own.is_nan() && y.is_nan();
                    assert!(same, "{} of {x:?}", stringify!($name));
                }
            )* };
        }
        same!(exp exp2 expm1 log log2 log10 log1p tanh sigmoid);
    }
    let odd = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        87.5,
        -103.9,
        709.5,
        -745.0,
        1e-310,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let numbers: Vec<f64> =
        odd.into_iter().chain((0..5000).map(|n| f64::from(n) / 13.0 - 200.0)).collect();
    compare(&numbers);
    compare(&numbers.iter().map(|&x| x as f32).collect::<Vec<_>>());
}

/// Every half through each function: one of the halves that lie nearest, as far as `f32` can tell, to what the standard
/// library finds in `f64`.
#[test]
#[cfg(feature = "half")]
fn halves_are_computed_in_single_precision_and_rounded_once() {
    use super::half::{bf16_from_f64, f16_from_f64};

    fn compare<T: super::Float + Copy>(
        of_bits: fn(u16) -> T,
        wide: fn(T) -> f64,
        narrow: fn(f64) -> T,
    ) {
        type Pair<T> = (&'static str, fn(T) -> T, fn(f64) -> f64);
        let functions: [Pair<T>; 9] = [
            ("exp", exp, f64::exp),
            ("exp2", super::exp2, f64::exp2),
            ("expm1", super::expm1, f64::exp_m1),
            ("log", log, f64::ln),
            ("log2", super::log2, f64::log2),
            ("log10", super::log10, f64::log10),
            ("log1p", super::log1p, f64::ln_1p),
            ("tanh", super::tanh, f64::tanh),
            ("sigmoid", super::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ];
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let x = of_bits(bits);
            for (name, own, other) in functions {
                let (got, exact) = (wide(own(x)), other(wide(x)));
                let slack = exact.abs() * 3e-7 + 3e-45;
                let near = [exact - slack, exact, exact + slack].map(|exact| wide(narrow(exact)));
                let right = near.contains(&got) || got.is_nan() && exact.is_nan();
                assert!(right, "{name} of {}: {got}, not {}", wide(x), near[1]);
            }
        }
    }
    compare(::half::f16::from_bits, ::half::f16::to_f64, f16_from_f64);
    compare(::half::bf16::from_bits, ::half::bf16::to_f64, bf16_from_f64);
}
