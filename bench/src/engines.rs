//! Engines in this process: ours on one and on all threads, as closures and as
//! programs, `ndarray`'s `Zip` and its parallel form,
//! candle, the vector functions of rten, loops written by hand for the case, and the floor.

use std::hint::black_box;
use std::mem::MaybeUninit;

use half::{bf16, f16};
use ndarray::{Array, Array2, ArrayD, ArrayView1, Axis, Dimension, Ix2, Ix4, LinalgScalar, Zip};
use rten_simd::SimdUnaryOp;
use simulcast::{
    Addend, broadcast_shapes, broadcast_to, copy_into, par_copy_into, par_sum_to_shape,
    sum_to_shape, zip,
};

use crate::case::Case;
use crate::floor::{self, Pages};
use crate::measure::Task;
use crate::model;
use crate::program;

/// Every engine that has an answer to the case, the floors first where there are any.
pub(crate) fn tasks(case: &Case) -> Vec<(&'static str, Task)> {
    let mut all = Vec::new();
    if case.op == "onnx_check" {
        return vec![("ours-1", model::task(case))];
    }
    if case.moves() {
        all.push(("floor", floor::of(case, Pages::Plain)));
        all.push(("floor-huge", floor::of(case, Pages::Huge)));
    }
    all.extend(zips(case));
    all.extend(program::tasks(case));
    all.extend(rten(case).map(|task| ("rten-1", task)));
    #[cfg(feature = "candle")]
    all.extend(crate::candle::task(case).map(|task| ("candle", task)));
    all
}

/// Ours and those of `ndarray`: the expression written as a closure.
fn zips(case: &Case) -> Vec<(&'static str, Task)> {
    match (case.op.as_str(), case.element.as_str()) {
        ("a + b", "f32") => binary(case, |a: &f32, b: &f32| a + b),
        ("a - b", "f32") => binary(case, |a: &f32, b: &f32| a - b),
        ("a * b", "f32") => binary(case, |a: &f32, b: &f32| a * b),
        ("a > b", "f32") => binary(case, |a: &f32, b: &f32| a > b),
        ("where(a > b, a, b)", "f32") => {
            binary(case, |a: &f32, b: &f32| if a > b { *a } else { *b })
        }
        ("a + b", "f64") => binary(case, |a: &f64, b: &f64| a + b),
        ("a + b", "i8") => binary(case, |a: &i8, b: &i8| a.wrapping_add(*b)),
        ("a * b", "i64") => binary(case, |a: &i64, b: &i64| a.wrapping_mul(*b)),
        ("a + b", "f16") => binary(case, |a: &f16, b: &f16| f16::from_f32(a.to_f32() + b.to_f32())),
        ("a + b", "bf16") => {
            binary(case, |a: &bf16, b: &bf16| bf16::from_f32(a.to_f32() + b.to_f32()))
        }
        ("a & b", "bool") => binary(case, |a: &bool, b: &bool| a & b),
        ("exp(a)", "f32") => unary(case, |a: &f32| a.exp()),
        ("tanh(a)", "f32") => unary(case, |a: &f32| a.tanh()),
        ("sin(a)", "f32") => unary(case, |a: &f32| a.sin()),
        ("a * b + c", "f32") => ternary(case, |x: &f32, s: &f32, b: &f32| x * s + b),
        ("(a - b) / c", "f32") => ternary(case, |x: &f32, m: &f32, s: &f32| (x - m) / s),
        ("exp(a - b) * c", "f32") => ternary(case, |x: &f32, m: &f32, r: &f32| (x - m).exp() * r),
        ("where(a, b, c)", "f32") => {
            ternary(case, |c: &bool, x: &f32, y: &f32| if *c { *x } else { *y })
        }
        ("(a - b) * c", "u8") => ternary(case, |x: &u8, m: &f32, s: &f32| (f32::from(*x) - m) * s),
        ("a * b + c * d", "f32") => quaternary(case, |a, b, c, d| a * b + c * d),
        ("(a - b) * c + d", "f32") => quaternary(case, |a, b, c, d| (a - b) * c + d),
        ("where(a > b, a - b, b - a) * c + d", "f32") => {
            quaternary(case, |a, b, c, d| if a > b { a - b } else { b - a } * c + d)
        }
        ("(a - b) / c * d + e", "f32") => quinary(case, |x, m, s, g, b| (x - m) / s * g + b),
        ("((a - b) * c + d) * e - b", "f32") => {
            quinary(case, |a, b, c, d, e| ((a - b) * c + d) * e - b)
        }
        (distance, "f32") if distance.starts_with("sum(") => distances(case),
        ("broadcast_shapes", _) => shapes(case),
        ("broadcast_to", "f32") => view(case),
        ("sum_to", "f32") => sum::<f32>(case),
        ("sum_to", "f16") => sum::<f16>(case),
        ("copy", "f32") => copy::<f32>(case),
        ("copy", "u8") => copy::<u8>(case),
        ("copy", "string") => copy::<String>(case),
        _ => Vec::new(),
    }
}

/// The functions of `rten-vecmath`, on one thread.
fn rten(case: &Case) -> Option<Task> {
    fn of(case: &Case, op: impl SimdUnaryOp<f32> + 'static) -> Task {
        let from: Vec<f32> = stored(case, 0).into_iter().collect();
        let mut to = vec![MaybeUninit::uninit(); from.len()];
        Box::new(move || {
            op.map(&from, &mut to);
            black_box(to.as_ptr());
        })
    }
    match (case.op.as_str(), case.element.as_str()) {
        ("exp(a)", "f32") => Some(of(case, rten_vecmath::Exp {})),
        ("tanh(a)", "f32") => Some(of(case, rten_vecmath::Tanh {})),
        _ => None,
    }
}

/// Elements of any type from numbers.
pub(crate) trait Element: Clone + Send + Sync + 'static {
    fn of(n: usize) -> Self;
}

macro_rules! element {
    ($($type:ty = $make:expr;)*) => { $(
        impl Element for $type {
            fn of(n: usize) -> Self {
                let make: fn(usize) -> $type = $make;
                make(n % 97)
            }
        }
    )* };
}

element! {
    f32 = |n| (n + 1) as f32 / 16.0;
    f64 = |n| (n + 1) as f64 / 16.0;
    i8 = |n| n as i8;
    u8 = |n| n as u8;
    i64 = |n| n as i64;
    f16 = |n| f16::from_f32((n + 1) as f32 / 16.0);
    bf16 = |n| bf16::from_f32((n + 1) as f32 / 16.0);
    bool = |n| n % 3 == 0;
    String = |n| format!("text {n}");
}

/// The rank that a case is computed in: 2 or 4.
fn rank(case: &Case) -> usize {
    if case.output().len() <= 2 { 2 } else { 4 }
}

/// The output's shape in that rank.
fn shape(case: &Case) -> Vec<usize> {
    let own = case.output();
    [vec![1; rank(case) - own.len()], own].concat()
}

/// Operand `n` of a case.
pub(crate) fn stored<T: Element>(case: &Case, n: usize) -> ArrayD<T> {
    let shape = &case.shapes[n];
    let count = shape.iter().product();
    let elements = (0..count).map(T::of).collect();
    let mut array = ArrayD::from_shape_vec(&shape[..], elements).expect("as many as the shape has");
    if n == 0 && case.transposed {
        array = array.reversed_axes();
    }
    if n == 0 && case.backwards {
        array.invert_axis(Axis(shape.len() - 1));
    }
    array
}

/// Operand `n` of a case, of the rank that it is computed in.
fn operand<T: Element>(case: &Case, n: usize) -> ArrayD<T> {
    let mut array = stored(case, n);
    while array.ndim() < rank(case) {
        array.insert_axis_inplace(Axis(0));
    }
    array
}

/// Calls a function with the dimension of that rank.
macro_rules! ranked {
    ($case:expr, $function:ident::<$($type:ty),*>($($argument:expr),*)) => {
        match $case.output().len() {
            0..=2 => $function::<Ix2, $($type),*>($($argument),*),
            _ => $function::<Ix4, $($type),*>($($argument),*),
        }
    };
}

fn fixed<D: Dimension, T>(array: ArrayD<T>) -> Array<T, D> {
    array.into_dimensionality().expect("the result's rank")
}

/// The same tasks for any number of operands, in fixed and dynamic rank.
macro_rules! zips {
    ($case:expr, $d:ty, $r:ty, [$($name:ident: $type:ty = $index:literal),*], $f:expr) => {{
        let case = $case;
        let (f, shape, fresh) = ($f, shape(case), case.fresh);
        let mut all: Vec<(&'static str, Task)> = Vec::new();
        let new = || fixed::<$d, $r>(ArrayD::from_elem(&shape[..], <$r>::of(1)));
        $(let $name = fixed::<$d, $type>(operand(case, $index));)*
        if fresh {
            { $(let $name = $name.clone();)* all.push(("ours-1", Box::new(move || { black_box(zip(($(&$name,)*)).map(f)); }))); }
            { $(let $name = $name.clone();)* all.push(("ours", Box::new(move || { black_box(zip(($(&$name,)*)).par_map(f)); }))); }
        } else {
            { $(let $name = $name.clone();)* let mut out = new(); all.push(("ours-1", Box::new(move || { zip(($(&$name,)*)).map_into(&mut out, f); black_box(&mut out); }))); }
            { $(let $name = $name.clone();)* let mut out = new(); all.push(("ours", Box::new(move || { zip(($(&$name,)*)).par_map_into(&mut out, f); black_box(&mut out); }))); }
            if shape.iter().product::<usize>() < 100 { $(let $name = $name.clone().into_dyn();)* let mut out = new().into_dyn(); all.push(("ours-dyn-1", Box::new(move || { zip(($(&$name,)*)).map_into(&mut out, f); black_box(&mut out); }))); }
        }
        all
    }};
}

macro_rules! ndarrays {
    ($case:expr, $d:ty, $r:ty, [$($name:ident: $type:ty = $index:literal),*], $f:expr) => {{
        let case = $case;
        let (f, shape, fresh) = ($f, shape(case), case.fresh);
        let mut all: Vec<(&'static str, Task)> = Vec::new();
        let new = || fixed::<$d, $r>(ArrayD::from_elem(&shape[..], <$r>::of(1)));
        $(let $name = fixed::<$d, $type>(operand(case, $index));)*
        {
            $(let $name = $name.clone();)*
            let mut out = new();
            let shape = shape.clone();
            all.push(("ndarray-1", Box::new(move || {
                if fresh { out = fixed(ArrayD::from_elem(&shape[..], <$r>::of(1))); }
                Zip::from(&mut out)$(.and_broadcast(&$name))*.for_each(|out, $($name),*| *out = f($($name),*));
                black_box(&mut out);
            })));
        }
        {
            $(let $name = $name.clone();)*
            let mut out = new();
            all.push(("ndarray", Box::new(move || {
                if fresh { out = fixed(ArrayD::from_elem(&shape[..], <$r>::of(1))); }
                Zip::from(&mut out)$(.and_broadcast(&$name))*.par_for_each(|out, $($name),*| *out = f($($name),*));
                black_box(&mut out);
            })));
        }
        all
    }};
}

fn binary<T: Element, R: Element, F>(case: &Case, f: F) -> Vec<(&'static str, Task)>
where
    F: Fn(&T, &T) -> R + Copy + Send + Sync + 'static,
{
    fn ranked<D: Dimension + 'static, T: Element, R: Element, F>(
        case: &Case,
        f: F,
    ) -> Vec<(&'static str, Task)>
    where
        F: Fn(&T, &T) -> R + Copy + Send + Sync + 'static,
    {
        let mut all = zips!(case, D, R, [a: T = 0, b: T = 1], f);
        all.extend(ndarrays!(case, D, R, [a: T = 0, b: T = 1], f));
        all
    }
    let mut all = ranked!(case, ranked::<T, R, F>(case, f));
    all.extend(by_hand(case, f));
    all
}

/// The loop that one would write: over rows of the output.
fn by_hand<T: Element, R: Element, F>(case: &Case, f: F) -> Option<(&'static str, Task)>
where
    F: Fn(&T, &T) -> R + Copy + Send + Sync + 'static,
{
    let shape = shape(case);
    let columns = *shape.last()?;
    let (a, b) = (operand::<T>(case, 0), operand::<T>(case, 1));
    if case.fresh || case.transposed || case.backwards || a.shape() != shape {
        return None;
    }
    let mut out = vec![R::of(1); a.len()];
    let (a, b) = (a.into_raw_vec_and_offset().0, b.into_raw_vec_and_offset().0);
    if b.len() == columns {
        return Some((
            "hand",
            Box::new(move || {
                for (out, a) in out.chunks_exact_mut(columns).zip(a.chunks_exact(columns)) {
                    for ((out, a), b) in out.iter_mut().zip(a).zip(&b) {
                        *out = f(a, b);
                    }
                }
                black_box(&mut out);
            }),
        ));
    }
    if b.len() * columns == a.len() {
        return Some((
            "hand",
            Box::new(move || {
                for ((out, a), b) in
                    out.chunks_exact_mut(columns).zip(a.chunks_exact(columns)).zip(&b)
                {
                    for (out, a) in out.iter_mut().zip(a) {
                        *out = f(a, b);
                    }
                }
                black_box(&mut out);
            }),
        ));
    }
    None
}

fn ternary<A: Element, B: Element, C: Element, R: Element, F>(
    case: &Case,
    f: F,
) -> Vec<(&'static str, Task)>
where
    F: Fn(&A, &B, &C) -> R + Copy + Send + Sync + 'static,
{
    fn ranked<D: Dimension + 'static, A: Element, B: Element, C: Element, R: Element, F>(
        case: &Case,
        f: F,
    ) -> Vec<(&'static str, Task)>
    where
        F: Fn(&A, &B, &C) -> R + Copy + Send + Sync + 'static,
    {
        let mut all = zips!(case, D, R, [a: A = 0, b: B = 1, c: C = 2], f);
        all.extend(ndarrays!(case, D, R, [a: A = 0, b: B = 1, c: C = 2], f));
        all
    }
    ranked!(case, ranked::<A, B, C, R, F>(case, f))
}

fn unary<F>(case: &Case, f: F) -> Vec<(&'static str, Task)>
where
    F: Fn(&f32) -> f32 + Copy + Send + Sync + 'static,
{
    let mut all = zips!(case, Ix2, f32, [a: f32 = 0], f);
    all.extend(ndarrays!(case, Ix2, f32, [a: f32 = 0], f));
    all
}

fn quaternary<F>(case: &Case, f: F) -> Vec<(&'static str, Task)>
where
    F: Fn(&f32, &f32, &f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    let mut all = zips!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3], f);
    all.extend(ndarrays!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3], f));
    all
}

fn quinary<F>(case: &Case, f: F) -> Vec<(&'static str, Task)>
where
    F: Fn(&f32, &f32, &f32, &f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    let mut all =
        zips!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3, e: f32 = 4], f);
    all.extend(
        ndarrays!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3, e: f32 = 4], f),
    );
    all
}

/// The sums of squared differences of every row of one with every row of the other: rows are
/// elements like any others.
fn distances(case: &Case) -> Vec<(&'static str, Task)> {
    fn square(a: &ArrayView1<'_, f32>, b: &ArrayView1<'_, f32>) -> f32 {
        let (a, b) = (a.as_slice().unwrap_or_default(), b.as_slice().unwrap_or_default());
        // Eight sums side by side, which vectors need.
        let mut sums = [0.0; 8];
        for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += (a - b) * (a - b);
            }
        }
        sums.iter().sum()
    }
    fn rows(points: &Array2<f32>, column: bool) -> ArrayD<ArrayView1<'_, f32>> {
        let shape = if column { vec![points.nrows(), 1] } else { vec![points.nrows()] };
        ArrayD::from_shape_vec(shape, points.rows().into_iter().collect()).expect("as many rows")
    }
    let points = |n| fixed::<Ix2, f32>(operand(case, n));
    let new = || ArrayD::from_elem(case.output(), 0.0_f32);
    let (a, b, mut one) = (points(0), points(1), new());
    let (c, d, mut all) = (points(0), points(1), new());
    let (e, f) = (points(0), points(1));
    vec![
        (
            "ours-1",
            Box::new(move || zip((&rows(&a, true), &rows(&b, false))).map_into(&mut one, square)),
        ),
        (
            "ours",
            Box::new(move || {
                zip((&rows(&c, true), &rows(&d, false))).par_map_into(&mut all, square);
            }),
        ),
        (
            "ndarray-1",
            Box::new(move || {
                let difference = &e.view().insert_axis(Axis(1)) - &f.view().insert_axis(Axis(0));
                black_box((&difference * &difference).sum_axis(Axis(2)));
            }),
        ),
    ]
}

/// The common shape.
fn shapes(case: &Case) -> Vec<(&'static str, Task)> {
    let shapes = case.shapes.clone();
    vec![("ours-1", Box::new(move || drop(black_box(broadcast_shapes(&shapes)))))]
}

/// A view without a copy.
fn view(case: &Case) -> Vec<(&'static str, Task)> {
    let (a, b, to) = (stored::<f32>(case, 0), stored::<f32>(case, 0), case.output());
    let also = to.clone();
    vec![
        ("ours-1", Box::new(move || drop(black_box(broadcast_to(&a, &to[..]))))),
        ("ndarray-1", Box::new(move || drop(black_box(b.broadcast(&also[..]))))),
    ]
}

fn copy<T: Element>(case: &Case) -> Vec<(&'static str, Task)> {
    let mut all: Vec<(&'static str, Task)> = Vec::new();
    let (a, shape) = (operand::<T>(case, 0), shape(case));
    let new = || ArrayD::from_elem(&shape[..], T::of(1));
    {
        let (a, mut out) = (a.clone(), new());
        all.push((
            "ours-1",
            Box::new(move || {
                copy_into(&a, &mut out);
                black_box(&mut out);
            }),
        ));
    }
    {
        let (a, mut out) = (a.clone(), new());
        all.push((
            "ours",
            Box::new(move || {
                par_copy_into(&a, &mut out);
                black_box(&mut out);
            }),
        ));
    }
    {
        let mut out = new();
        all.push((
            "ndarray-1",
            Box::new(move || {
                out.assign(&a);
                black_box(&mut out);
            }),
        ));
    }
    all
}

fn sum<T: Element + Addend + LinalgScalar>(case: &Case) -> Vec<(&'static str, Task)> {
    let shape = case.output();
    let elements = (0..case.elements()).map(T::of).collect();
    let grad = ArrayD::from_shape_vec(&case.shapes[0][..], elements).expect("as many as it has");
    let (one, all, peer) = (grad.clone(), grad.clone(), grad);
    let (to, also) = (shape.clone(), shape.clone());
    // The peer sums axis by axis, the last first, as one would write it.
    let axes: Vec<usize> = (0..peer.ndim())
        .rev()
        .filter(|axis| {
            let back = peer.ndim() - axis;
            shape.len().checked_sub(back).is_none_or(|at| shape[at] != peer.shape()[*axis])
        })
        .collect();
    vec![
        ("ours-1", Box::new(move || drop(black_box(sum_to_shape(&one, &to[..]))))),
        ("ours", Box::new(move || drop(black_box(par_sum_to_shape(&all, &also[..]))))),
        (
            "ndarray-1",
            Box::new(move || {
                let mut sums: Option<ArrayD<T>> = None;
                for &axis in &axes {
                    let axis = Axis(axis);
                    sums = Some(sums.map_or_else(|| peer.sum_axis(axis), |s| s.sum_axis(axis)));
                }
                black_box(sums);
            }),
        ),
    ]
}
