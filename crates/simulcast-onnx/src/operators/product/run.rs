//! Products of matrices: batch axes broadcast; within, the loops of `simulcast-kernels` for real numbers, `ndarray`'s
//! (by `matrixmultiply`) for complex ones.
//!
//! 16-bit floats are multiplied as `float32` and rounded once; integers wrap.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayD, ArrayView2, ArrayViewD, ArrayViewMut2, Axis, Dimension, IxDyn};
use simulcast::types::Literal;
use simulcast::{AnyArray, AnyView, Complex, DType, Element, Op};
use simulcast_core::{Rule, broadcast_shapes, format_shape, resolve};
use simulcast_kernels::product::Factor;

use crate::run::code::{Results, one, reshaped};
use crate::run::error::NodeError;
use crate::run::node::{Allowed, Inputs, RunNode};
use crate::run::value::array;

/// A product of two matrices into a third, which is 0 everywhere.
type Multiply<T> = fn(&ArrayView2<'_, T>, &ArrayView2<'_, T>, &mut ArrayViewMut2<'_, T>);

/// Products of complex numbers, by `matrixmultiply`.
fn complex<T: ndarray::LinalgScalar>(
    a: &ArrayView2<'_, T>,
    b: &ArrayView2<'_, T>,
    out: &mut ArrayViewMut2<'_, T>,
) {
    general_mat_mul(T::one(), a, b, T::zero(), out);
}

macro_rules! wrapping {
    ($name:ident, $type:ty) => {
        fn $name(
            a: &ArrayView2<'_, $type>,
            b: &ArrayView2<'_, $type>,
            out: &mut ArrayViewMut2<'_, $type>,
        ) {
            for (a, mut out) in a.rows().into_iter().zip(out.rows_mut()) {
                for (&a, b) in a.iter().zip(b.rows()) {
                    out.zip_mut_with(&b, |out: &mut $type, &b| {
                        *out = out.wrapping_add(a.wrapping_mul(b))
                    });
                }
            }
        }
    };
}
wrapping!(wrapping_i64, i64);
wrapping!(wrapping_u64, u64);

pub(crate) fn matmul<'a>(_: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    one(product(&inputs.view(0)?, &inputs.view(1)?, allowed)?)
}

/// The product in the sense of NumPy's `matmul`.
pub(crate) fn product(
    a: &AnyView<'_>,
    b: &AnyView<'_>,
    allowed: &Allowed,
) -> Result<AnyArray, NodeError> {
    let dtype = a.dtype();
    if b.dtype() != dtype {
        return Err(format!("{dtype} and {} differ", b.dtype()).into());
    }
    use simulcast::DTypeKind;
    let wide = match dtype.kind() {
        DTypeKind::Signed => DType::I64,
        DTypeKind::Unsigned => DType::U64,
        DTypeKind::Float if dtype != DType::F64 => DType::F32,
        DTypeKind::Float | DTypeKind::Complex => dtype,
        DTypeKind::Bool | DTypeKind::String => {
            return Err(format!("there is no product of {dtype}").into());
        }
    };
    let cast = |view: &AnyView<'_>, to: DType| {
        allowed.evaluate(std::slice::from_ref(view), |build, args| build.cast(args[0], to))
    };
    if wide != dtype {
        let (a, b) = (cast(a, wide)?, cast(b, wide)?);
        return cast(&product(&a.view(), &b.view(), allowed)?.view(), dtype);
    }
    match wide {
        DType::F32 => batches(a, b, allowed, floats::<f32>),
        DType::F64 => batches(a, b, allowed, floats::<f64>),
        DType::C64 => batches(a, b, allowed, |pair, batch, sizes, _| {
            one_by_one(complex::<Complex<f32>>, pair, batch, sizes)
        }),
        DType::C128 => batches(a, b, allowed, |pair, batch, sizes, _| {
            one_by_one(complex::<Complex<f64>>, pair, batch, sizes)
        }),
        DType::I64 => batches(a, b, allowed, |pair, batch, sizes, _| {
            one_by_one(wrapping_i64, pair, batch, sizes)
        }),
        _ => batches(a, b, allowed, |pair, batch, sizes, _| {
            one_by_one(wrapping_u64, pair, batch, sizes)
        }),
    }
}

/// The products of all matrices of a batch: of two operands, the sizes of the batch, and rows, inner size and columns.
type All<T> = Result<Vec<T>, NodeError>;

/// All of them by the loops of the engine.
fn floats<T: Factor + Element + Send + Sync>(
    pair: [&ArrayViewD<'_, T>; 2],
    batch: &[usize],
    sizes: [usize; 3],
    allowed: &Allowed,
) -> All<T> {
    super::floats::multiply(pair, batch, sizes, allowed)
}

/// All of them, one after another.
fn one_by_one<T: Element + Default>(
    multiply: Multiply<T>,
    [x, y]: [&ArrayViewD<'_, T>; 2],
    batch: &[usize],
    [m, k, n]: [usize; 3],
) -> All<T> {
    let count: usize = batch.iter().product();
    let to = |own: [usize; 2]| IxDyn(&[batch, &own].concat());
    let (x, y) = (x.broadcast(to([m, k])), y.broadcast(to([k, n])));
    let (Some(x), Some(y)) = (x, y) else { return Err("the batches do not stretch".into()) };
    let mut all: Vec<T> = Vec::new();
    all.try_reserve_exact(count.saturating_mul(m).saturating_mul(n))
        .map_err(|error| error.to_string())?;
    all.resize(count.saturating_mul(m).saturating_mul(n), T::default());
    // Matrices without elements may be many.
    if all.is_empty() {
        return Ok(all);
    }
    for (index, out) in ndarray::indices(IxDyn(batch)).into_iter().zip(all.chunks_exact_mut(m * n))
    {
        let mut pair = [x.view(), y.view()];
        for (axis, at) in index.slice().iter().enumerate().rev() {
            pair = pair.map(|view| view.index_axis_move(Axis(axis), *at));
        }
        let matrices = pair.map(ArrayViewD::into_dimensionality::<ndarray::Ix2>);
        let [Ok(a), Ok(b)] = matrices else { return Err("no matrices".into()) };
        let mut out = ArrayViewMut2::from_shape((m, n), out).map_err(|error| error.to_string())?;
        multiply(&a, &b, &mut out);
    }
    Ok(all)
}

fn batches<T: Element>(
    a: &AnyView<'_>,
    b: &AnyView<'_>,
    allowed: &Allowed,
    multiply: impl Fn([&ArrayViewD<'_, T>; 2], &[usize], [usize; 3], &Allowed) -> All<T>,
) -> Result<AnyArray, NodeError>
where
    AnyArray: From<ArrayD<T>>,
{
    let (Some(mut x), Some(mut y)) = (a.typed::<T>(), b.typed::<T>()) else {
        return Err("a view without its type".into());
    };
    if x.ndim() == 0 || y.ndim() == 0 {
        return Err("it multiplies no scalars".into());
    }
    // A vector stands for a row on the left and a column on the right.
    let (row, column) = (x.ndim() == 1, y.ndim() == 1);
    if row {
        x = x.insert_axis(Axis(0));
    }
    if column {
        y = y.insert_axis(Axis(1));
    }
    let split = |view: &ArrayViewD<'_, T>| {
        let (batch, matrix) = view.shape().split_at(view.ndim() - 2);
        (batch.to_vec(), [matrix[0], matrix[1]])
    };
    let ((left, [m, k]), (right, [inner, n])) = (split(&x), split(&y));
    if k != inner {
        let (a, b) = (format_shape(a.shape()), format_shape(b.shape()));
        return Err(format!("{a} @ {b}: the inner sizes {k} and {inner} differ").into());
    }
    let batch = broadcast_shapes(&[&left[..], &right])?;
    let mut shape = [&batch[..], &[m, n]].concat();
    allowed.room(&shape, T::DTYPE)?;
    let all = multiply([&x, &y], &batch, [m, k, n], allowed)?;
    let made = array(&shape, all)?;
    if column {
        shape.pop();
    }
    if row {
        shape.remove(shape.len() - 1 - usize::from(!column));
    }
    reshaped(AnyArray::from(made).into(), &shape, allowed)?.into_array(allowed)
}

/// A matrix, or the same memory seen as its transpose.
fn turned(view: AnyView<'_>, over: bool) -> Result<AnyView<'_>, NodeError> {
    match over {
        true => view.permuted_axes(&[1, 0]).ok_or_else(|| "it has not two axes".into()),
        false => Ok(view),
    }
}

/// `alpha * A @ B + beta * C`, with A and B transposed where said.
pub(crate) fn gemm<'a>(call: &RunNode, allowed: &Allowed, inputs: &mut Inputs<'a>) -> Results<'a> {
    let side = |input: usize, name: &str| {
        let view = inputs.view(input)?;
        if view.shape().len() != 2 {
            return Err(NodeError::from(format!("{} is no matrix", format_shape(view.shape()))));
        }
        Ok((view, call.flag(name, false)))
    };
    let ((a, over_a), (b, over_b)) = (side(0, "transA")?, side(1, "transB")?);
    let dtype = a.dtype();
    let wide = match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        dtype => dtype,
    };
    // Rounded once, at the end.
    let widened = |view: &AnyView<'_>, over: bool| {
        allowed.evaluate(std::slice::from_ref(view), |build, args| {
            let x = build.cast(args[0], wide)?;
            Ok(if over { build.transpose(x, None) } else { x })
        })
    };
    let product = match wide == dtype {
        // A transposed matrix is only seen otherwise: copying it would cost more than a product of few rows.
        true => product(&turned(a.clone(), over_a)?, &turned(b.clone(), over_b)?, allowed)?,
        false => {
            let (a, b) = (widened(&a, over_a)?, widened(&b, over_b)?);
            product(&a.view(), &b.view(), allowed)?
        }
    };
    let (alpha, beta) = (call.float("alpha", 1.0), call.float("beta", 1.0));
    let c = match inputs.get(2) {
        Some(c) => {
            let rule = match call.opset < 7 && !call.flag("broadcast", false) {
                true => Rule::Exact,
                false => Rule::Unidirectional,
            };
            resolve(rule, &[product.shape(), c.shape()])?;
            // As in BLAS, what counts for nothing is not read: it may be NaN.
            (beta != 0.0).then(|| c.view())
        }
        None => None,
    };
    match (&c, dtype) {
        (None, _) if alpha == 1.0 && wide == dtype => return one(product),
        (Some(c), DType::F32) if alpha == 1.0 && beta == 1.0 => return added::<f32>(product, c),
        (Some(c), DType::F64) if alpha == 1.0 && beta == 1.0 => return added::<f64>(product, c),
        _ => {}
    }
    let views: Vec<AnyView<'_>> = std::iter::once(product.view()).chain(c).collect();
    // Of integers, parts of whole numbers are added before they are dropped.
    let parts = dtype.is_integer() && (alpha.fract() != 0.0 || beta.fract() != 0.0);
    let wide = if parts { DType::F64 } else { wide };
    one(allowed.evaluate(&views, |build, args| {
        let scaled = |build: &mut simulcast::program::Builder, x, by: f64| match by == 1.0 {
            true => Ok(x),
            false if dtype.is_integer() && !parts => {
                let x = build.cast(x, DType::F64)?;
                let by = build.literal(Literal::Float(by));
                let x = build.apply(Op::Multiply, &[x, by])?;
                build.cast(x, dtype)
            }
            false => {
                let by = build.literal(Literal::Float(by));
                build.apply(Op::Multiply, &[x, by])
            }
        };
        let product = build.cast(args[0], wide)?;
        let mut sum = scaled(build, product, alpha)?;
        if let Some(&c) = args.get(1) {
            let c = build.cast(c, wide)?;
            let c = scaled(build, c, beta)?;
            sum = build.apply(Op::Add, &[sum, c])?;
        }
        build.cast(sum, dtype)
    })?)
}

/// A product and what is added to it, which lies on it: in its memory, since a program takes longer to make than a
/// product of few rows.
fn added<'a, T: Element + std::ops::AddAssign>(product: AnyArray, c: &AnyView<'_>) -> Results<'a>
where
    AnyArray: From<ArrayD<T>>,
{
    let mut product = product.into_typed::<T>().map_err(|_| "a product without its type")?;
    let c = c.typed::<T>().ok_or("C is of another type")?;
    let c = c.broadcast(product.raw_dim()).ok_or("C does not lie on the product")?;
    product.zip_mut_with(&c, |sum, own| *sum += own.clone());
    one(product)
}

/// An equation, as one program: axes of all letters, a product, and a sum over those that go.
pub(crate) fn einsum<'a>(
    call: &RunNode,
    allowed: &Allowed,
    inputs: &mut Inputs<'a>,
) -> Results<'a> {
    let equation: String = call.text("equation").unwrap_or("").split_whitespace().collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != inputs.0.len() {
        return Err(format!("{equation:?} has {} operands", terms.len()).into());
    }
    let views: Vec<AnyView<'_>> =
        (0..terms.len()).map(|input| inputs.view(input)).collect::<Result<_, _>>()?;
    // An ellipsis stands for as many axes as are left, right-aligned: digits name them.
    let mut dots = 0;
    for (term, view) in terms.iter().zip(&views) {
        let letters = term.chars().filter(|c| *c != '.').count();
        let rest = view.shape().len().checked_sub(letters);
        match (rest, term.contains("...")) {
            (Some(rest), true) if rest < 10 => dots = dots.max(rest),
            (Some(0), false) => {}
            _ => {
                return Err(
                    format!("{term:?} does not describe {}", format_shape(view.shape())).into()
                );
            }
        }
    }
    let spelled = |term: &str, rank: usize| {
        let letters = term.chars().filter(|c| *c != '.').count();
        let own = dots - rank.saturating_sub(letters).min(dots)..dots;
        let digits: String = own.filter_map(|n| char::from_digit(n as u32, 10)).collect();
        term.replacen("...", &digits, 1)
    };
    let terms: Vec<String> =
        terms.iter().zip(&views).map(|(term, view)| spelled(term, view.shape().len())).collect();
    let all: String = terms.concat();
    let named = |c: char| c.is_ascii_alphabetic() || c.is_ascii_digit();
    let output = match right {
        Some(right) => spelled(right, usize::MAX),
        // Those that occur once, in order, after the ellipsis.
        None => {
            let once = |c: &char| c.is_ascii_digit() || all.matches(*c).count() == 1;
            let mut kept: Vec<char> = all.chars().filter(once).collect();
            kept.sort_unstable();
            kept.dedup();
            kept.into_iter().collect()
        }
    };
    let mut order: Vec<char> = Vec::new();
    for letter in output.chars().chain(all.chars()) {
        if !named(letter) || (order.len() >= output.chars().count() && !all.contains(letter)) {
            return Err(format!("{equation:?} is no equation").into());
        }
        if !order.contains(&letter) {
            order.push(letter);
        }
    }
    let kept = output.chars().count();
    if order.iter().take(kept).copied().ne(output.chars())
        || !output.chars().all(|c| all.contains(c))
    {
        return Err(format!("{equation:?} is no equation").into());
    }
    // Each operand with its axes in that order; a letter that it has twice shows its diagonal.
    let mut laid: Vec<AnyArray> = Vec::with_capacity(views.len());
    for (view, term) in views.iter().zip(&terms) {
        let own = crate::run::value::each!(view, typed => shown(typed, term, &order))?;
        laid.push(own);
    }
    let over: Vec<isize> = (kept..order.len()).map(usize::cast_signed).collect();
    let views: Vec<AnyView<'_>> = laid.iter().map(AnyArray::view).collect();
    let dtype = views[0].dtype();
    one(allowed.evaluate(&views, |build, args| {
        let mut product = args[0];
        for &next in &args[1..] {
            product = build.apply(Op::Multiply, &[product, next])?;
        }
        if !over.is_empty() {
            product = build.reduce(simulcast::program::Fold::Sum, product, Some(&over), false)?;
        }
        build.cast(product, dtype)
    })?)
}

/// An operand with an axis for each letter, of size 1 where it has none.
fn shown<T: Element>(
    mut view: ArrayViewD<'_, T>,
    term: &str,
    order: &[char],
) -> Result<AnyArray, NodeError> {
    let mut letters: Vec<char> = term.chars().collect();
    let mut at = 0;
    while at < letters.len() {
        let again = letters.iter().skip(at + 1).position(|letter| *letter == letters[at]);
        match again.map(|after| at + 1 + after) {
            Some(second) => {
                let size = view.shape()[at];
                if view.shape()[second] != size {
                    let sizes = format_shape(view.shape());
                    return Err(format!("{term:?} has two sizes for a letter in {sizes}").into());
                }
                let places: Vec<_> = (0..size)
                    .map(|n| view.index_axis(Axis(second), n).index_axis_move(Axis(at), n))
                    .collect();
                let diagonal = ndarray::stack(Axis(at), &places).map_err(|e| e.to_string())?;
                letters.remove(second);
                let term: String = letters.iter().collect();
                return shown(diagonal.view(), &term, order);
            }
            None => at += 1,
        }
    }
    let mut moved: Vec<usize> = (0..letters.len()).collect();
    moved.sort_by_key(|&axis| order.iter().position(|letter| *letter == letters[axis]));
    view = view.permuted_axes(moved);
    for (axis, letter) in order.iter().enumerate() {
        if !letters.contains(letter) {
            view = view.insert_axis(Axis(axis));
        }
    }
    Ok(AnyView::from(&view).to_owned())
}
