//! The error of an array that has another type, or another rank, than was requested.

use std::fmt;

use ndarray::Dimension;
use simulcast_core::format_shape;
use simulcast_kernels::dtype::{DType, Element};

/// An array of another element type, or with another number of axes, than was asked for.
///
/// ```
/// use ndarray::{Array1, array};
/// use simulcast::{AnyArray, DType};
///
/// let error = Array1::<f64>::try_from(AnyArray::from(array![1_f32])).unwrap_err();
/// assert_eq!((error.found().0, error.expected().0), (DType::F32, DType::F64));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntoArrayError {
    dtype: DType,
    shape: Box<[usize]>,
    expected: DType,
    rank: Option<usize>,
}

impl IntoArrayError {
    /// Whether an array of that type and shape is an `Array<T, D>`.
    pub(crate) fn check<T: Element, D: Dimension>(
        dtype: DType,
        shape: &[usize],
    ) -> Result<(), Self> {
        match dtype == T::DTYPE && D::NDIM.is_none_or(|rank| rank == shape.len()) {
            true => Ok(()),
            false => Err(Self::new::<T, D>(dtype, shape)),
        }
    }

    /// The error for an array of that type and shape.
    pub(crate) fn new<T: Element, D: Dimension>(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: shape.into(), expected: T::DTYPE, rank: D::NDIM }
    }

    /// The array's element type and shape.
    #[must_use]
    pub fn found(&self) -> (DType, &[usize]) {
        (self.dtype, &self.shape)
    }

    /// The element type that was asked for, and the number of axes, where that was fixed.
    #[must_use]
    pub const fn expected(&self) -> (DType, Option<usize>) {
        (self.expected, self.rank)
    }
}

impl fmt::Display for IntoArrayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the array is {} {}, not {}",
            self.dtype,
            format_shape(&self.shape),
            self.expected
        )?;
        match self.rank {
            None => Ok(()),
            Some(1) => f.write_str(" with 1 axis"),
            Some(rank) => write!(f, " with {rank} axes"),
        }
    }
}

impl std::error::Error for IntoArrayError {}
