//! Views from a pointer, a shape and signed strides: the only place that makes them.
//!
//! Invariant: for every index within the shape, the pointer moved by the index times the strides
//! lies on an element of the borrowed array. It holds because a stride is either the array's own,
//! on an axis of the same length, or 0.

use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, ShapeBuilder};

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
    let (dim, steps, low) = layout::<D>(shape, strides);
    // SAFETY: the low end is reached by the index that is largest on every axis of negative stride,
    // so it lies in the array, and so does what the absolute strides reach from there; by the
    // conditions of this function. Nothing is read where a size is 0.
    let mut view = unsafe { ArrayView::from_shape_ptr(dim.strides(steps), pointer.offset(low)) };
    backward(shape, strides).for_each(|axis| view.invert_axis(axis));
    view
}

/// [`view`], for writing.
///
/// # Safety
///
/// As for [`view`]; no other reference reads or writes the elements during `'a`, and no two indices reach one element.
pub(crate) unsafe fn view_mut<'a, A, D: Dimension>(
    pointer: *mut A,
    shape: &[usize],
    strides: &[isize],
) -> ArrayViewMut<'a, A, D> {
    let (dim, steps, low) = layout::<D>(shape, strides);
    // SAFETY: as for `view`.
    let mut view = unsafe { ArrayViewMut::from_shape_ptr(dim.strides(steps), pointer.offset(low)) };
    backward(shape, strides).for_each(|axis| view.invert_axis(axis));
    view
}

/// Sizes, absolute strides, and the offset of the lowest element: `ndarray`'s constructors take no negative stride, so views
/// begin there, and axes of negative stride are inverted afterwards.
fn layout<D: Dimension>(shape: &[usize], strides: &[isize]) -> (D, D, isize) {
    let empty = shape.contains(&0);
    let (mut dim, mut steps) = (D::zeros(shape.len()), D::zeros(shape.len()));
    let (mut low, mut whole) = (0_isize, 1_usize);
    for (axis, (&size, &stride)) in shape.iter().zip(strides).enumerate().rev() {
        dim[axis] = size;
        if empty {
            // `ndarray` requires strides under which no two indices collide, even if there are none.
            steps[axis] = whole;
            whole = whole.saturating_mul(size.max(1));
        } else {
            steps[axis] = stride.unsigned_abs();
            low += if stride < 0 { stride * (size.cast_signed() - 1) } else { 0 };
        }
    }
    (dim, steps, low)
}

/// The axes to invert.
fn backward(shape: &[usize], strides: &[isize]) -> impl Iterator<Item = Axis> {
    let empty = shape.contains(&0);
    let back = strides.iter().enumerate().filter(move |&(_, &stride)| stride < 0 && !empty);
    back.map(|(axis, _)| Axis(axis))
}
