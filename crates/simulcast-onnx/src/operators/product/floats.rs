//! Products of `f32` and `f64`: matrices of a batch by the loops of `simulcast-kernels`, cut for threads.
//!
//! Where there are as many matrices as threads, each thread takes whole ones; else each product is cut by rows, or by
//! columns where there are few rows. Parts have the bits of the whole, so the number of threads changes none.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ndarray::ArrayViewD;
use simulcast_kernels::Level;
use simulcast_kernels::product::{Factor, Matrix, Method, Product};
use simulcast_kernels::tuning::{PRODUCT_PART_OPERATIONS, PRODUCT_UNINTERRUPTED_OPERATIONS};
use simulcast_threads::{for_each_part, is_interruptible, share, threads};

use crate::run::error::NodeError;

/// Rows and columns of a part are multiples of these, so that parts end where tiles do.
const TILE_ROWS: usize = 8;
const TILE_COLUMNS: usize = 64;

/// The elements of an operand, and its strides: 0 along axes of size 1.
struct Memory<'v, T: Clone> {
    elements: Cow<'v, [T]>,
    strides: Vec<usize>,
}

impl<'v, T: Copy> Memory<'v, T> {
    /// Elements where they are; copied row after row where they have gaps, or lie backwards.
    fn of(view: &'v ArrayViewD<'v, T>) -> Self {
        let along = |(stride, size): (&isize, &usize)| match size {
            0 | 1 => Some(0),
            _ => usize::try_from(*stride).ok(),
        };
        let strides: Option<Vec<usize>> =
            view.strides().iter().zip(view.shape()).map(along).collect();
        match (strides, view.as_slice_memory_order()) {
            (Some(strides), Some(elements)) => Self { elements: Cow::Borrowed(elements), strides },
            _ => {
                let elements = Cow::Owned(view.iter().copied().collect());
                let mut strides = vec![0; view.ndim()];
                let mut step = 1_usize;
                for (stride, &size) in strides.iter_mut().zip(view.shape()).rev() {
                    *stride = if size > 1 { step } else { 0 };
                    step = step.saturating_mul(size);
                }
                Self { elements, strides }
            }
        }
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

/// The products of all matrices of a batch, one after another.
pub(super) fn multiply<T: Factor + Send + Sync>(
    [x, y]: [&ArrayViewD<'_, T>; 2],
    batch: &[usize],
    [m, k, n]: [usize; 3],
    limit: Option<usize>,
) -> Result<Vec<T>, NodeError> {
    let (left, right) = (Memory::of(x), Memory::of(y));
    let count: usize = batch.iter().product();
    let elements = count.saturating_mul(m).saturating_mul(n);
    let mut all = Vec::new();
    all.try_reserve_exact(elements).map_err(|error| error.to_string())?;
    all.resize(elements, T::default());
    if all.is_empty() {
        return Ok(all);
    }
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
    let operations = m.saturating_mul(n).saturating_mul(k);
    let parts = |work: usize| {
        let threads = threads().min(limit.unwrap_or(usize::MAX)).max(1);
        let stops = if is_interruptible() { work / PRODUCT_UNINTERRUPTED_OPERATIONS } else { 1 };
        (work / PRODUCT_PART_OPERATIONS).min(threads).max(stops).max(1)
    };
    let level = Level::for_programs();
    let wanted = parts(operations.saturating_mul(count));
    if count == 1 || count < wanted {
        for (number, out) in all.chunks_exact_mut(m * n).enumerate() {
            one(&product(number).ok_or_else(apart)?, [m, n], parts(operations), limit, level, out);
        }
        return Ok(all);
    }
    // Each part has its matrices, and is locked by one thread once.
    let cut = |part: usize| share(count, part, wanted);
    let outs = split(&mut all, (0..wanted).map(|part| (cut(part + 1) - cut(part)) * m * n));
    let failed = Mutex::new(false);
    for_each_part(wanted, limit, &|part| {
        let mut out = outs[part].lock().unwrap_or_else(PoisonError::into_inner);
        for (number, out) in (cut(part)..).zip(out.chunks_exact_mut(m * n)) {
            match product(number) {
                Some(product) => product.run(level, 0..m, 0..n, out),
                None => *failed.lock().unwrap_or_else(PoisonError::into_inner) = true,
            }
        }
    });
    drop(outs);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed { Err(apart()) } else { Ok(all) }
}

/// One product, in parts of rows, or of columns.
fn one<T: Factor + Send + Sync>(
    product: &Product<'_, T>,
    [m, n]: [usize; 2],
    parts: usize,
    limit: Option<usize>,
    level: Level,
    out: &mut [T],
) {
    let by_rows = m >= parts * TILE_ROWS && product.method() != Method::Rows;
    let (size, tile) = if by_rows { (m, TILE_ROWS) } else { (n, TILE_COLUMNS) };
    let parts = parts.min(size.div_ceil(tile));
    if parts <= 1 {
        product.run(level, 0..m, 0..n, out);
        return;
    }
    let tiles = size.div_ceil(tile);
    let cut = |part: usize| -> Range<usize> {
        (share(tiles, part, parts) * tile).min(size)
            ..(share(tiles, part + 1, parts) * tile).min(size)
    };
    let other = if by_rows { n } else { m };
    let run = |outs: &[Mutex<&mut [T]>]| {
        for_each_part(parts, limit, &|part| {
            let mut out = outs[part].lock().unwrap_or_else(PoisonError::into_inner);
            match by_rows {
                true => product.run(level, cut(part), 0..n, &mut out),
                false => product.run(level, 0..m, cut(part), &mut out),
            }
        });
    };
    let sizes = (0..parts).map(|part| cut(part).len() * other);
    if by_rows || m == 1 {
        run(&split(out, sizes));
        return;
    }
    // Columns of a part lie side by side first: there are few rows.
    let mut beside = vec![T::default(); m * n];
    run(&split(&mut beside, sizes));
    let mut start = 0;
    for columns in (0..parts).map(cut) {
        let width = columns.len();
        for (row, own) in beside[start..start + m * width].chunks_exact(width).enumerate() {
            out[row * n + columns.start..][..width].copy_from_slice(own);
        }
        start += m * width;
    }
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
        ] {
            let (x, y) = (of(&left), of(&right));
            let sizes = [left[left.len() - 2], left[left.len() - 1], right[right.len() - 1]];
            let batch = if left.len() == 4 { vec![3, 5] } else { vec![] };
            let turned = y.clone().into_owned();
            let mut axes: Vec<usize> = (0..turned.ndim()).collect();
            axes.reverse();
            let lies_turned =
                turned.view().permuted_axes(axes.clone()).as_standard_layout().into_owned();
            for y in [y.view(), lies_turned.view().permuted_axes(axes.clone())] {
                let run = |limit| multiply([&x.view(), &y], &batch, sizes, limit).unwrap();
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
                    assert!((f64::from(*own) - sum).abs() < 1e-3, "{index:?}: {own} {sum}");
                }
            }
        }
    }

    #[test]
    fn what_lies_backwards_or_apart_is_copied() {
        let all = Array::from_shape_fn(IxDyn(&[4, 6]), |at| (at[0] * 6 + at[1]) as f64);
        let mut back = all.view();
        back.invert_axis(ndarray::Axis(1));
        let steps = [2, 3];
        let apart =
            all.slice_each_axis(|own| ndarray::Slice::new(0, None, steps[own.axis.index()]));
        for own in [all.view(), back, apart] {
            let (rows, columns) = (own.shape()[0], own.shape()[1]);
            let over = own.view().reversed_axes();
            let made = multiply([&own, &over], &[], [rows, columns, rows], None).unwrap();
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
            let sums = self.sum_axis(ndarray::Axis(0));
            sums.iter().map(|sum| sum * sum).sum()
        }
    }
}
