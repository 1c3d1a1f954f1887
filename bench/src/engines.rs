//! Engines in this process: ours on one and on all threads, as closures and as
//! programs, `ndarray`'s `Zip` and its parallel form,
//! candle, the vector functions of rten, and loops written by hand for the case.
//!
//! Every closure is compiled for each engine, rank and way of calling that it is measured with: what no case needs is
//! left out, because it costs seconds of compiling each.

use std::cell::LazyCell;
use std::hint::black_box;
use std::rc::Rc;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, ArrayView1, Axis, Dimension, Ix2, Ix4, LinalgScalar, Zip};
use simulcast::{
    Addend, broadcast_shapes, broadcast_to, copy_into, par_copy_into, par_sum_to_shape,
    sum_to_shape, zip,
};

use crate::case::Case;
use crate::measure::Task;
use crate::operands::{Element, fixed, operand, rank, shape, stored};
use crate::program;
use crate::rotation::{Rotation, copies, count};

/// The engines that are asked for and have an answer to a case.
pub struct Engines<'w> {
    wanted: &'w dyn Fn(&str) -> bool,
    all: Vec<(&'static str, Task)>,
}

impl Engines<'_> {
    /// An engine, made where it is asked for.
    pub fn add(&mut self, engine: &'static str, make: impl FnOnce() -> Task) {
        if (self.wanted)(engine) {
            self.all.push((engine, make()));
        }
    }

    /// An engine that finds out whether it has an answer.
    #[cfg(feature = "candle")]
    pub fn add_if(&mut self, engine: &'static str, make: impl FnOnce() -> Option<Task>) {
        if (self.wanted)(engine) {
            self.all.extend(make().map(|task| (engine, task)));
        }
    }
}

/// The engines that have an answer to the case.
pub fn tasks(case: &Case, wanted: &dyn Fn(&str) -> bool) -> Vec<(&'static str, Task)> {
    let mut engines = Engines { wanted, all: Vec::new() };
    if case.op == "onnx_check" {
        #[cfg(feature = "onnx")]
        engines.add("ours-1", || crate::model::task(case));
        return engines.all;
    }
    if case.grad.is_some() {
        program::tasks(&mut engines, case);
        return engines.all;
    }
    zips(&mut engines, case);
    program::tasks(&mut engines, case);
    #[cfg(feature = "rten")]
    rten(&mut engines, case);
    #[cfg(feature = "candle")]
    crate::candle::add(&mut engines, case);
    engines.all
}

/// Ours and those of `ndarray`: the expression written as a closure.
fn zips(to: &mut Engines<'_>, case: &Case) {
    let flat = rank(case) == 2;
    match (case.op.as_str(), case.element.as_str()) {
        ("a + b", "f32") if case.fresh => fresh(to, case, |a: &f32, b: &f32| a + b),
        ("a + b", "f32") if flat => {
            let add = |a: &f32, b: &f32| a + b;
            binary::<Ix2, f32, f32, _>(to, case, add);
            dynamic(to, case, add);
        }
        ("a + b", "f32") => binary::<Ix4, f32, f32, _>(to, case, |a, b| a + b),
        ("a - b", "f32") => binary::<Ix4, f32, f32, _>(to, case, |a, b| a - b),
        ("a * b", "f32") => binary::<Ix2, f32, f32, _>(to, case, |a, b| a * b),
        ("a > b", "f32") => binary::<Ix2, f32, bool, _>(to, case, |a, b| a > b),
        ("where(a > b, a, b)", "f32") => {
            binary::<Ix2, f32, f32, _>(to, case, |a, b| if a > b { *a } else { *b });
        }
        ("a + b", "f64") => binary::<Ix2, f64, f64, _>(to, case, |a, b| a + b),
        ("a + b", "i8") => binary::<Ix2, i8, i8, _>(to, case, |a, b| a.wrapping_add(*b)),
        ("a * b", "i64") => binary::<Ix2, i64, i64, _>(to, case, |a, b| a.wrapping_mul(*b)),
        ("a + b", "f16") => {
            binary::<Ix2, f16, f16, _>(to, case, |a, b| f16::from_f32(a.to_f32() + b.to_f32()));
        }
        ("a + b", "bf16") => {
            binary::<Ix2, bf16, bf16, _>(to, case, |a, b| bf16::from_f32(a.to_f32() + b.to_f32()));
        }
        ("a & b", "bool") => binary::<Ix2, bool, bool, _>(to, case, |a, b| a & b),
        ("exp(a)", "f32") => unary(to, case, |a| a.exp()),
        ("tanh(a)", "f32") => unary(to, case, |a| a.tanh()),
        ("sin(a)", "f32") => unary(to, case, |a| a.sin()),
        ("a * b + c", "f32") if flat => {
            ternary::<Ix2, f32, f32, f32, _>(to, case, |x, s, b| x * s + b);
        }
        ("a * b + c", "f32") => ternary::<Ix4, f32, f32, f32, _>(to, case, |x, s, b| x * s + b),
        ("(a - b) / c", "f32") => ternary::<Ix2, f32, f32, f32, _>(to, case, |x, m, s| (x - m) / s),
        ("exp(a - b) * c", "f32") => {
            ternary::<Ix2, f32, f32, f32, _>(to, case, |x, m, r| (x - m).exp() * r);
        }
        ("where(a, b, c)", "f32") => {
            ternary::<Ix2, bool, f32, f32, _>(to, case, |c, x, y| if *c { *x } else { *y });
        }
        ("(a - b) * c", "u8") => {
            ternary::<Ix4, u8, f32, f32, _>(to, case, |x, m, s| (f32::from(*x) - m) * s);
        }
        ("a * b + c * d", "f32") => quaternary(to, case, |a, b, c, d| a * b + c * d),
        ("(a - b) * c + d", "f32") => quaternary(to, case, |a, b, c, d| (a - b) * c + d),
        ("where(a > b, a - b, b - a) * c + d", "f32") => {
            quaternary(to, case, |a, b, c, d| if a > b { a - b } else { b - a } * c + d);
        }
        ("(a - b) / c * d + e", "f32") => {
            quinary(to, case, |x, m, s, g, b| (x - m) / s * g + b);
        }
        ("((a - b) * c + d) * e - b", "f32") => {
            quinary(to, case, |a, b, c, d, e| ((a - b) * c + d) * e - b);
        }
        (distance, "f32") if distance.starts_with("sum(") => distances(to, case),
        ("broadcast_shapes", _) => shapes(to, case),
        ("broadcast_to", "f32") => view(to, case),
        ("sum_to", "f32") => sum::<f32>(to, case),
        ("sum_to", "f16") => sum::<f16>(to, case),
        ("copy", "f32") => copy::<f32>(to, case),
        ("copy", "u8") => copy::<u8>(to, case),
        ("copy", "string") => copy::<String>(to, case),
        _ => {}
    }
}

/// The functions of `rten-vecmath`, on one thread.
#[cfg(feature = "rten")]
fn rten(to: &mut Engines<'_>, case: &Case) {
    use rten_simd::SimdUnaryOp;
    fn of(case: &Case, op: impl SimdUnaryOp<f32> + 'static) -> Task {
        let from: Vec<f32> = stored(case, 0).into_iter().collect();
        let of = |_| (from.clone(), vec![std::mem::MaybeUninit::uninit(); from.len()]);
        let mut sets = Rotation::new((0..count(case)).map(of));
        Box::new(move || {
            let (from, to) = sets.turn();
            op.map(from, to);
            black_box(to.as_ptr());
        })
    }
    match (case.op.as_str(), case.element.as_str()) {
        ("exp(a)", "f32") => to.add("rten-1", || of(case, rten_vecmath::Exp {})),
        ("tanh(a)", "f32") => to.add("rten-1", || of(case, rten_vecmath::Tanh {})),
        _ => {}
    }
}

/// The operands of a case, each shared by its engines, and what makes sets of them with an output each.
macro_rules! sets {
    ($case:expr, $d:ty, $r:ty, [$($name:ident: $type:ty = $index:literal),*]) => {{
        let case = $case;
        $(let $name = LazyCell::new(move || copies(case, fixed::<$d, $type>(operand(case, $index))));)*
        move || Rotation::new((0..count(case)).map(|copy| {
            let out = fixed::<$d, $r>(ArrayD::from_elem(shape(case), <$r>::of(1)));
            ($(Rc::clone(&$name[copy]),)* out)
        }))
    }};
}

/// The closure, zipped over any number of operands by us and by `ndarray`.
macro_rules! zips {
    ($to:expr, $sets:expr, [$($name:ident),*], $f:expr) => {{
        let (to, sets, f) = ($to, $sets, $f);
        to.add("ours-1", || {
            let mut sets = sets();
            Box::new(move || {
                let ($($name,)* out) = sets.turn();
                zip(($(&**$name,)*)).map_into(out, f);
                black_box(out);
            })
        });
        to.add("ours", || {
            let mut sets = sets();
            Box::new(move || {
                let ($($name,)* out) = sets.turn();
                zip(($(&**$name,)*)).par_map_into(out, f);
                black_box(out);
            })
        });
        to.add("ndarray-1", || {
            let mut sets = sets();
            Box::new(move || {
                let ($($name,)* out) = sets.turn();
                Zip::from(&mut *out)$(.and_broadcast(&**$name))*.for_each(|out, $($name),*| *out = f($($name),*));
                black_box(out);
            })
        });
        to.add("ndarray", || {
            let mut sets = sets();
            Box::new(move || {
                let ($($name,)* out) = sets.turn();
                Zip::from(&mut *out)$(.and_broadcast(&**$name))*.par_for_each(|out, $($name),*| *out = f($($name),*));
                black_box(out);
            })
        });
    }};
}

fn unary<F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&f32) -> f32 + Copy + Send + Sync + 'static,
{
    zips!(to, sets!(case, Ix2, f32, [a: f32 = 0]), [a], f);
}

fn binary<D: Dimension + 'static, T: Element, R: Element, F>(
    to: &mut Engines<'_>,
    case: &Case,
    f: F,
) where
    F: Fn(&T, &T) -> R + Copy + Send + Sync + 'static,
{
    zips!(&mut *to, sets!(case, D, R, [a: T = 0, b: T = 1]), [a, b], f);
    by_hand(to, case, f);
}

/// [`binary`] into results that the call allocates.
fn fresh<F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    let sets = sets!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1]);
    to.add("ours-1", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, b, _) = sets.turn();
            black_box(zip((&**a, &**b)).map(f));
        })
    });
    to.add("ours", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, b, _) = sets.turn();
            black_box(zip((&**a, &**b)).par_map(f));
        })
    });
    to.add("ndarray-1", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, b, _) = sets.turn();
            black_box(Zip::from(&**a).and_broadcast(&**b).map_collect(f));
        })
    });
    to.add("ndarray", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, b, _) = sets.turn();
            black_box(Zip::from(&**a).and_broadcast(&**b).par_map_collect(f));
        })
    });
}

/// Small cases with a rank that is known when the case runs.
fn dynamic<F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    if case.elements() >= 100 {
        return;
    }
    to.add("ours-dyn-1", || {
        let (a, b) = (operand::<f32>(case, 0), operand::<f32>(case, 1));
        let mut out = ArrayD::from_elem(shape(case), 0.0);
        Box::new(move || {
            zip((&a, &b)).map_into(&mut out, f);
            black_box(&mut out);
        })
    });
}

/// The loop that one would write: over rows of the output.
fn by_hand<T: Element, R: Element, F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&T, &T) -> R + Copy + Send + Sync + 'static,
{
    let shape = shape(case);
    let (columns, elements) = (shape[shape.len() - 1], shape.iter().product::<usize>());
    let [a, b] = [0, 1].map(|n| case.shapes[n].iter().product::<usize>());
    let rowwise = b == columns;
    if case.transposed || case.backwards || a != elements || (!rowwise && b * columns != a) {
        return;
    }
    to.add("hand", || {
        let of = |n| operand::<T>(case, n).into_raw_vec_and_offset().0;
        let set = |_| (of(0), of(1), vec![R::of(1); a]);
        let mut sets = Rotation::new((0..count(case)).map(set));
        Box::new(move || {
            let (a, b, out) = sets.turn();
            let rows = out.chunks_exact_mut(columns).zip(a.chunks_exact(columns));
            if rowwise {
                for (out, a) in rows {
                    for ((out, a), b) in out.iter_mut().zip(a).zip(&*b) {
                        *out = f(a, b);
                    }
                }
            } else {
                for ((out, a), b) in rows.zip(&*b) {
                    for (out, a) in out.iter_mut().zip(a) {
                        *out = f(a, b);
                    }
                }
            }
            black_box(out);
        })
    });
}

fn ternary<D: Dimension + 'static, A: Element, B: Element, C: Element, F>(
    to: &mut Engines<'_>,
    case: &Case,
    f: F,
) where
    F: Fn(&A, &B, &C) -> f32 + Copy + Send + Sync + 'static,
{
    zips!(to, sets!(case, D, f32, [a: A = 0, b: B = 1, c: C = 2]), [a, b, c], f);
}

fn quaternary<F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&f32, &f32, &f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    let sets = sets!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3]);
    zips!(to, sets, [a, b, c, d], f);
}

fn quinary<F>(to: &mut Engines<'_>, case: &Case, f: F)
where
    F: Fn(&f32, &f32, &f32, &f32, &f32) -> f32 + Copy + Send + Sync + 'static,
{
    let sets = sets!(case, Ix2, f32, [a: f32 = 0, b: f32 = 1, c: f32 = 2, d: f32 = 3, e: f32 = 4]);
    zips!(to, sets, [a, b, c, d, e], f);
}

/// The sums of squared differences of every row of one with every row of the other: rows are
/// elements like any others.
fn distances(to: &mut Engines<'_>, case: &Case) {
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
    let points = || [0, 1].map(|n| fixed::<Ix2, f32>(operand(case, n)));
    let new = || ArrayD::from_elem(case.output(), 0.0_f32);
    to.add("ours-1", || {
        let ([a, b], mut out) = (points(), new());
        Box::new(move || zip((&rows(&a, true), &rows(&b, false))).map_into(&mut out, square))
    });
    to.add("ours", || {
        let ([a, b], mut out) = (points(), new());
        Box::new(move || zip((&rows(&a, true), &rows(&b, false))).par_map_into(&mut out, square))
    });
    to.add("ndarray-1", || {
        let [a, b] = points();
        Box::new(move || {
            let difference = &a.view().insert_axis(Axis(1)) - &b.view().insert_axis(Axis(0));
            black_box((&difference * &difference).sum_axis(Axis(2)));
        })
    });
}

/// The common shape.
fn shapes(to: &mut Engines<'_>, case: &Case) {
    to.add("ours-1", || {
        let shapes = case.shapes.clone();
        Box::new(move || drop(black_box(broadcast_shapes(&shapes))))
    });
}

/// A view without a copy.
fn view(to: &mut Engines<'_>, case: &Case) {
    to.add("ours-1", || {
        let (a, to) = (stored::<f32>(case, 0), case.output());
        Box::new(move || drop(black_box(broadcast_to(&a, &to[..]))))
    });
    to.add("ndarray-1", || {
        let (a, to) = (stored::<f32>(case, 0), case.output());
        Box::new(move || drop(black_box(a.broadcast(&to[..]))))
    });
}

fn copy<T: Element>(to: &mut Engines<'_>, case: &Case) {
    let a = LazyCell::new(|| copies(case, operand::<T>(case, 0)));
    let sets = || {
        let set = |a: &Rc<ArrayD<T>>| (Rc::clone(a), ArrayD::from_elem(shape(case), T::of(1)));
        Rotation::new(a.iter().map(set))
    };
    to.add("ours-1", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, out) = sets.turn();
            copy_into(&**a, out);
            black_box(out);
        })
    });
    to.add("ours", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, out) = sets.turn();
            par_copy_into(&**a, out);
            black_box(out);
        })
    });
    to.add("ndarray-1", || {
        let mut sets = sets();
        Box::new(move || {
            let (a, out) = sets.turn();
            out.assign(&**a);
            black_box(out);
        })
    });
}

fn sum<T: Element + Addend + LinalgScalar>(to: &mut Engines<'_>, case: &Case) {
    let shape = case.output();
    let grads = LazyCell::new(|| copies(case, stored::<T>(case, 0)));
    let grads = || Rotation::new(grads.iter().map(Rc::clone));
    to.add("ours-1", || {
        let (mut grads, shape) = (grads(), shape.clone());
        Box::new(move || drop(black_box(sum_to_shape(&**grads.turn(), &shape[..]))))
    });
    to.add("ours", || {
        let (mut grads, shape) = (grads(), shape.clone());
        Box::new(move || drop(black_box(par_sum_to_shape(&**grads.turn(), &shape[..]))))
    });
    to.add("ndarray-1", || {
        let mut grads = grads();
        let from = &case.shapes[0];
        // The peer sums axis by axis, the last first, as one would write it.
        let summed = |axis: &usize| {
            let back = from.len() - axis;
            shape.len().checked_sub(back).is_none_or(|at| shape[at] != from[*axis])
        };
        let axes: Vec<usize> = (0..from.len()).rev().filter(summed).collect();
        Box::new(move || {
            let (grad, mut sums) = (grads.turn(), None::<ArrayD<T>>);
            for &axis in &axes {
                let axis = Axis(axis);
                sums = Some(sums.map_or_else(|| grad.sum_axis(axis), |s| s.sum_axis(axis)));
            }
            black_box(sums);
        })
    });
}
