//! Products of `f32` and `f64`: matrices of a batch by the loops of `simulcast-kernels`, cut for threads.
//!
//! Where there are as many matrices as threads, each thread takes whole ones; else each product is cut by rows or by
//! columns, whichever gives more parts. Parts have the bits of the whole, so the number of threads changes none.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use ndarray::{ArrayViewD, Axis, Slice};
use simulcast::Element;
use simulcast_kernels::Level;
use simulcast_kernels::product::{Factor, Matrix, Method, Out, Product};
use simulcast_kernels::tuning::{PRODUCT_PART_OPERATIONS, PRODUCT_UNINTERRUPTED_OPERATIONS};
use simulcast_threads::{for_each_part, is_interruptible, share, threads};

use crate::run::error::NodeError;
use crate::run::node::Allowed;

/// Rows and columns of a part are multiples of these, so that parts end where tiles do.
const TILE_ROWS: usize = 8;
const TILE_COLUMNS: usize = 64;

/// The elements of an operand, and its strides: 0 along axes of size 1, and along those that are stretched.
struct Memory<'v, T: Clone> {
    elements: Cow<'v, [T]>,
    strides: Vec<usize>,
}

impl<'v, T: Element> Memory<'v, T> {
    /// Elements where they are; copied row after row where they have gaps, or lie backwards. A copy counts as held.
    fn of(view: ArrayViewD<'v, T>, allowed: &mut Allowed) -> Result<Self, NodeError> {
        // What is stretched is one element again: it is never written out.
        let mut view = view;
        for axis in 0..view.ndim() {
            if view.strides()[axis] == 0 {
                view.slice_axis_inplace(Axis(axis), Slice::from(..1));
            }
        }
        let along = |(stride, size): (&isize, &usize)| match size {
            0 | 1 => Some(0),
            _ => usize::try_from(*stride).ok(),
        };
        let strides: Option<Vec<usize>> =
            view.strides().iter().zip(view.shape()).map(along).collect();
        if let (Some(strides), Some(elements)) = (strides, view.to_slice_memory_order()) {
            return Ok(Self { elements: Cow::Borrowed(elements), strides });
        }
        allowed.room(view.shape(), T::DTYPE)?;
        let mut elements = Vec::new();
        elements.try_reserve_exact(view.len()).map_err(|error| error.to_string())?;
        elements.extend(view.iter().cloned());
        allowed.held = allowed.held.saturating_add(size_of_val(&elements[..]));
        let mut strides = vec![0; view.ndim()];
        let mut step = 1_usize;
        for (stride, &size) in strides.iter_mut().zip(view.shape()).rev() {
            *stride = if size > 1 { step } else { 0 };
            step = step.saturating_mul(size);
        }
        Ok(Self { elements: Cow::Owned(elements), strides })
    }

    /// A matrix of the last two axes, where the axes before them have this index in a batch of more axes or larger
    /// ones.
    fn matrix(&self, index: &[usize], sizes: [usize; 2]) -> Option<Matrix<'_, T>> {
        let (batch, matrix) = self.strides.split_last_chunk::<2>()?;
        let own = index.len().checked_sub(batch.len())?;
        let offset = index[own..].iter().zip(batch).map(|(at, stride)| at * stride).sum();
        // A row of size 1 is contiguous, whatever its stride.
        let [down, right] = *matrix;
        let right = if sizes[1] == 1 { 1 } else { right };
        let down = if sizes[0] == 1 && right != 1 { 1 } else { down };
        Matrix::new(self.elements.get(offset..).unwrap_or_default(), sizes, [down, right])
    }
}

/// The products of all matrices of a batch, one after another; there is room for them.
pub(super) fn multiply<T: Factor + Element + Send + Sync>(
    [x, y]: [&ArrayViewD<'_, T>; 2],
    batch: &[usize],
    [m, k, n]: [usize; 3],
    allowed: &Allowed,
) -> Result<Vec<T>, NodeError> {
    let count: usize = batch.iter().product();
    let elements = count.saturating_mul(m).saturating_mul(n);
    let mut all = Vec::new();
    all.try_reserve_exact(elements).map_err(|error| error.to_string())?;
    all.resize(elements, T::default());
    if all.is_empty() {
        return Ok(all);
    }
    let limit = allowed.threads;
    let mut allowed =
        Allowed { held: allowed.held.saturating_add(size_of_val(&all[..])), ..*allowed };
    let left = Memory::of(x.view(), &mut allowed)?;
    let right = Memory::of(y.view(), &mut allowed)?;
    let index = |number: usize| {
        let mut index = vec![0; batch.len()];
        let mut rest = number;
        for (at, size) in index.iter_mut().zip(batch).rev() {
            *at = rest % size;
            rest /= size;
        }
        index
    };
    let product = |number: usize| {
        let index = index(number);
        let (a, b) = (left.matrix(&index, [m, k])?, right.matrix(&index, [k, n])?);
        Product::new(a, b)
    };
    let apart = || NodeError::from("the batches do not stretch");
    let parts = |work: usize| {
        let threads = threads().min(limit.unwrap_or(usize::MAX)).max(1);
        let stops = if is_interruptible() { work / PRODUCT_UNINTERRUPTED_OPERATIONS } else { 1 };
        (work / PRODUCT_PART_OPERATIONS).min(threads).max(stops).max(1)
    };
    let level = Level::for_programs();
    let wanted = parts(m.saturating_mul(n).saturating_mul(k).saturating_mul(count));
    if count < wanted {
        let products: Option<Vec<_>> = (0..count).map(product).collect();
        cut(&products.ok_or_else(apart)?, [m, n], wanted.div_ceil(count), limit, level, &mut all);
        return Ok(all);
    }
    // Each part has its matrices, and is locked by one thread once.
    let start = |part: usize| share(count, part, wanted);
    let outs = split(&mut all, (0..wanted).map(|part| (start(part + 1) - start(part)) * m * n));
    let failed = Mutex::new(false);
    for_each_part(wanted, limit, &|part| {
        let mut out = outs[part].lock().unwrap_or_else(PoisonError::into_inner);
        for (number, out) in (start(part)..).zip(out.chunks_exact_mut(m * n)) {
            match product(number).zip(Out::new(out, [m, n])) {
                Some((product, out)) => product.run(level, 0..m, 0..n, out),
                None => *failed.lock().unwrap_or_else(PoisonError::into_inner) = true,
            }
        }
    });
    drop(outs);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed { Err(apart()) } else { Ok(all) }
}

/// Into how many parts a product is cut, and whether by rows: along the axis that gives more parts. Where both give as many, by
/// columns where rows of B are read where they lie, since each part then reads its own; else by rows.
fn parts_of(method: Method, [m, n]: [usize; 2], wanted: usize) -> (usize, bool) {
    let (rows, columns) = (m.div_ceil(TILE_ROWS).min(wanted), n.div_ceil(TILE_COLUMNS).min(wanted));
    let by_rows = match method {
        Method::Rows => rows > columns,
        Method::Columns | Method::Packed => rows >= columns,
    };
    (rows.max(columns).max(1), by_rows)
}

/// Products of the same sizes, each in parts of rows, or of columns, which threads write where they belong.
fn cut<T: Factor + Send + Sync>(
    products: &[Product<'_, T>],
    [m, n]: [usize; 2],
    wanted: usize,
    limit: Option<usize>,
    level: Level,
    all: &mut [T],
) {
    let mut parts = Vec::new();
    for (product, out) in products.iter().zip(all.chunks_exact_mut(m * n)) {
        let (count, by_rows) = parts_of(product.method(), [m, n], wanted);
        let (size, tile) = if by_rows { (m, TILE_ROWS) } else { (n, TILE_COLUMNS) };
        let tiles = size.div_ceil(tile);
        let start = |part: usize| (share(tiles, part, count) * tile).min(size);
        let mut rest = Out::new(out, [m, n]);
        for part in 0..count {
            let own = start(part)..start(part + 1);
            let (out, after) = match rest.take() {
                Some(rest) if by_rows => rest.split_rows(own.len()),
                Some(rest) => rest.split_columns(own.len()),
                None => break,
            };
            rest = Some(after);
            let (rows, columns) = if by_rows { (own, 0..n) } else { (0..m, own) };
            parts.push(Mutex::new(Some((product, rows, columns, out))));
        }
    }
    for_each_part(parts.len(), limit, &|part| {
        let own = parts[part].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((product, rows, columns, out)) = own {
            product.run(level, rows, columns, out);
        }
    });
}

/// Neighbouring parts of these lengths.
fn split<T>(mut all: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<Mutex<&mut [T]>> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = all.split_at_mut(length.min(all.len()));
        parts.push(Mutex::new(part));
        all = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use ndarray::{Array, ArrayD, Dimension as _, IxDyn};

    use super::*;

    fn allowed(bytes: usize, threads: Option<usize>) -> Allowed {
        Allowed { bytes, held: 0, threads }
    }

    #[test]
    fn stretched_operands_are_read_where_they_are() {
        // Terabytes, were they written out; where addresses have 32 bits, 64 MiB.
        let huge = 1 << (usize::BITS / 16 * 5);
        let limit = allowed(1 << 10, Some(2));
        let (row, three) =
            (Array::from_iter((0..64).map(|at| at as f32)), Array::from_elem(1, 3.0));
        let rows = row.broadcast(IxDyn(&[huge, huge, 64])).unwrap();
        let threes = three.broadcast(IxDyn(&[64, 5])).unwrap();
        let (matrix, some) = (rows.index_axis(Axis(0), 0), Slice::from(..9));
        let mut nine = matrix.view();
        nine.slice_axis_inplace(Axis(0), some);
        assert_eq!(multiply([&nine, &threes], &[], [9, 64, 5], &limit).unwrap(), [6048.0; 45]);
        let mut counted = limit;
        let memory = Memory::of(rows.view(), &mut counted).unwrap();
        assert_eq!((memory.elements.len(), &memory.strides[..]), (64, &[0, 0, 1][..]));
        assert_eq!(counted.held, 0);
        // A dot product of a number that is stretched along the inner axis of both.
        let number = three.broadcast(IxDyn(&[1, huge])).unwrap();
        let made = multiply([&number, &number.t()], &[], [1, huge, 1], &limit).unwrap();
        assert_eq!(made, [9.0 * huge as f32]);
    }

    #[test]
    fn operands_of_an_empty_result_are_not_copied() {
        let all = Array::from_elem(IxDyn(&[50, 100]), 1.0);
        let mut apart = all.view();
        apart.slice_axis_inplace(Axis(1), Slice::new(0, None, 2));
        let none = ArrayD::zeros(IxDyn(&[0, 50]));
        let made = multiply([&none.view(), &apart], &[], [0, 50, 50], &allowed(0, None)).unwrap();
        assert_eq!(made, Vec::<f64>::new());
    }

    #[test]
    fn copies_of_operands_count() {
        let all = Array::from_shape_fn(IxDyn(&[2, 1000]), |at| at[1] as f32);
        let apart = all.slice_each_axis(|own| match own.axis.index() {
            0 => Slice::from(..),
            _ => Slice::new(0, None, 2),
        });
        let over = apart.view().reversed_axes();
        let run = |bytes| multiply([&apart, &over], &[], [2, 500, 2], &allowed(bytes, None));
        // The result and two copies of 4,000 bytes.
        let made = run(8016).unwrap();
        let sum: f64 = (0..500).map(|at| f64::from(4 * at * at)).sum();
        assert!(made.iter().all(|own| (f64::from(*own) / sum - 1.0).abs() < 1e-5), "{made:?}");
        let error = run(8015).unwrap_err();
        assert!(matches!(error, NodeError::Memory { held: 4016, .. }), "{error:?}");
    }

    #[test]
    fn products_are_cut_along_the_axis_with_more_tiles() {
        for (method, sizes, wanted, parts) in [
            (Method::Columns, [32, 64], 256, (4, true)),
            (Method::Rows, [32, 64], 8, (4, true)),
            (Method::Rows, [32, 256], 4, (4, false)),
            (Method::Columns, [32, 1024], 8, (8, false)),
            (Method::Packed, [256, 1024], 8, (8, true)),
            (Method::Packed, [1, 1], 8, (1, true)),
        ] {
            assert_eq!(parts_of(method, sizes, wanted), parts, "{method:?} {sizes:?}");
        }
    }

    #[test]
    fn threads_and_batches_change_no_bit() {
        let of = |shape: &[usize]| -> ArrayD<f32> {
            Array::from_shape_fn(IxDyn(shape), |at| {
                let sum: usize = at.slice().iter().zip([31, 17, 7, 3]).map(|(a, b)| a * b).sum();
                (sum % 101) as f32 / 101.0 - 0.5
            })
        };
        // Large enough for four parts, of rows, of columns and of matrices.
        for (left, right) in [
            (vec![96, 300], vec![300, 256]),
            (vec![2, 1030], vec![1030, 1100]),
            (vec![3, 1, 40, 64], vec![5, 64, 130]),
            // Few rows and columns; and of them a batch of fewer than there are threads.
            (vec![32, 1024], vec![1024, 64]),
            (vec![1, 1, 32, 1024], vec![2, 1024, 64]),
        ] {
            let (x, y) = (of(&left), of(&right));
            let sizes = [left[left.len() - 2], left[left.len() - 1], right[right.len() - 1]];
            let batch = if left.len() == 4 { vec![left[0], right[0]] } else { vec![] };
            let turned = y.clone().into_owned();
            let mut axes: Vec<usize> = (0..turned.ndim()).collect();
            axes.reverse();
            let lies_turned =
                turned.view().permuted_axes(axes.clone()).as_standard_layout().into_owned();
            for y in [y.view(), lies_turned.view().permuted_axes(axes.clone())] {
                let run = |limit| {
                    multiply([&x.view(), &y], &batch, sizes, &allowed(1 << 30, limit)).unwrap()
                };
                let one = run(Some(1));
                for limit in [Some(2), Some(3), Some(4), None] {
                    assert_eq!(run(limit), one);
                }
                let whole =
                    ArrayD::from_shape_vec([&batch[..], &[sizes[0], sizes[2]]].concat(), one)
                        .unwrap();
                for (index, own) in whole.indexed_iter().step_by(97) {
                    let index = index.slice();
                    let (row, column) = (index[index.len() - 2], index[index.len() - 1]);
                    let sum: f64 = (0..sizes[1])
                        .map(|at| {
                            let (a, b) = match batch.is_empty() {
                                true => (x[[row, at]], y[[at, column]]),
                                false => (x[[index[0], 0, row, at]], y[[index[1], at, column]]),
                            };
                            f64::from(a) * f64::from(b)
                        })
                        .sum();
                    assert!((f64::from(*own) - sum).abs() < 1e-2, "{index:?}: {own} {sum}");
                }
            }
        }
    }

    #[test]
    fn what_lies_backwards_or_apart_is_copied() {
        let all = Array::from_shape_fn(IxDyn(&[4, 6]), |at| (at[0] * 6 + at[1]) as f64);
        let mut back = all.view();
        back.invert_axis(Axis(1));
        let steps = [2, 3];
        let apart = all.slice_each_axis(|own| Slice::new(0, None, steps[own.axis.index()]));
        for own in [all.view(), back, apart] {
            let (rows, columns) = (own.shape()[0], own.shape()[1]);
            let over = own.view().reversed_axes();
            let made = multiply([&own, &over], &[], [rows, columns, rows], &allowed(1 << 20, None))
                .unwrap();
            let sum: f64 = own.row_sums();
            assert_eq!(made.iter().sum::<f64>(), sum);
        }
    }

    trait RowSums {
        fn row_sums(&self) -> f64;
    }

    impl RowSums for ArrayViewD<'_, f64> {
        /// The sum of all products of rows, which are whole numbers.
        fn row_sums(&self) -> f64 {
            let sums = self.sum_axis(Axis(0));
            sums.iter().map(|sum| sum * sum).sum()
        }
    }
}
