//! Views made of a pointer, a shape and signed strides: the one place that does so.
//!
//! Invariant: for every index within the shape, the pointer moved by the index times the strides
//! lies on an element of the borrowed array. It holds because a stride is either the array's own,
//! on an axis of the same length, or 0.

use ndarray::{ArrayView, Axis, Dimension, ShapeBuilder};

/// The view of that shape and those strides, in elements.
///
/// # Safety
///
/// - `shape` and `strides` have as many entries as `D` has axes, where `D` has a fixed rank;
/// - every element that an index within `shape` reaches from `pointer` is valid for reads for
///   `'a` and lies in the one array that `pointer` points into;
/// - the product of the sizes other than 0 fits in `isize`.
pub(crate) unsafe fn view<'a, A, D: Dimension>(
    pointer: *const A,
    shape: &[usize],
    strides: &[isize],
) -> ArrayView<'a, A, D> {
    let empty = shape.contains(&0);
    let (mut dim, mut steps) = (D::zeros(shape.len()), D::zeros(shape.len()));
    // `ndarray`'s constructors take no negative stride: begin at the low end, then turn axes over.
    let mut low = 0_isize;
    for (axis, (&size, &stride)) in shape.iter().zip(strides).enumerate() {
        dim[axis] = size;
        if !empty {
            steps[axis] = stride.unsigned_abs();
            low += if stride < 0 { stride * (size.cast_signed() - 1) } else { 0 };
        }
    }
    // SAFETY: the low end is reached by the index that is largest on every axis of negative stride,
    // so it lies in the array, and so does what the absolute strides reach from there; by the
    // conditions of this function. Nothing is read where a size is 0.
    let mut view = unsafe {
        ArrayView::from_shape_ptr(dim.strides(steps), pointer.offset(if empty { 0 } else { low }))
    };
    for (axis, &stride) in strides.iter().enumerate() {
        if stride < 0 && !empty {
            view.invert_axis(Axis(axis));
        }
    }
    view
}
