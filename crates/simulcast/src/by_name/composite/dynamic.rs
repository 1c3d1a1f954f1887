//! Operators of more than one step, or of any number of operands, on arrays of any type.
//!
//! ```
//! use ndarray::array;
//! use simulcast::{AnyArray, AnyView, dynamic};
//!
//! let (a, b, c) = (array![[1, 5], [3, 4]], array![2, 2], array![[4], [0]]);
//! let most = dynamic::max(&[AnyView::from(&a), AnyView::from(&b), AnyView::from(&c)])?;
//! assert_eq!(most, AnyArray::from(array![[4, 5], [3, 4]]));
//! assert_eq!(dynamic::expand(&(&b).into(), &[2, 1])?, AnyArray::from(array![[2, 2], [2, 2]]));
//! # Ok::<(), simulcast::ProgramError>(())
//! ```
//!
//! These are ONNX's; the types follow NumPy's promotion, which leaves equal types as they are. Those
//! of one step are [`Op::apply`]; activations are in [`compose`].

use simulcast_core::Rule;

use crate::by_name::apply::Apply as _;
use crate::by_name::apply::lay;
use crate::by_name::composite::compose::{self, evaluate};
use crate::by_name::dyn_array::{AnyArray, AnyView};
use crate::by_name::program::ProgramError;
use crate::by_name::types::Promotion;
use simulcast_kernels::op::Op;

/// Which way bits are shifted.
///
/// ```
/// use ndarray::array;
/// use simulcast::dynamic::{Direction, bit_shift};
/// use simulcast::{AnyArray, AnyView};
///
/// let (x, y) = (array![1_u8, 6], array![1_u8]);
/// let shifted = bit_shift(&AnyView::from(&x), &AnyView::from(&y), Direction::Right)?;
/// assert_eq!(shifted, AnyArray::from(array![0_u8, 3]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards higher values.
    Left,
    /// Towards lower values.
    Right,
}

/// `min(max(x, lo), hi)`, with the bounds that there are; where `lo` is above `hi`, `hi`.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, dynamic};
///
/// let (x, lo, hi) = (array![-1.0, 0.5, 9.0], array![0.0], array![1.0]);
/// let clipped = dynamic::clip(&AnyView::from(&x), Some(&AnyView::from(&lo)), Some(&AnyView::from(&hi)))?;
/// assert_eq!(clipped, AnyArray::from(array![0.0, 0.5, 1.0]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the arrays do not broadcast, or have no order.
pub fn clip(
    x: &AnyView<'_>,
    lo: Option<&AnyView<'_>>,
    hi: Option<&AnyView<'_>>,
) -> Result<AnyArray, ProgramError> {
    let operands: Vec<AnyView<'_>> = [Some(x), lo, hi].into_iter().flatten().cloned().collect();
    evaluate(Promotion::Numpy, &operands, |build, args| {
        let (x, bounds) = (args[0], &args[1..]);
        let lo = lo.and(bounds.first().copied());
        let hi = hi.and(bounds.last().copied());
        compose::clip(build, x, lo, hi)
    })
}

/// `slope * x` where `x` is negative, else `x`; the slope stretches to `x`, never the other way.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, dynamic};
///
/// let (x, slope) = (array![[-1.0, 2.0], [-3.0, -4.0]], array![0.5, 2.0]);
/// let y = dynamic::prelu(&AnyView::from(&x), &AnyView::from(&slope))?;
/// assert_eq!(y, AnyArray::from(array![[-0.5, 2.0], [-1.5, -8.0]]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the slope does not stretch to `x`, or the types have no product.
pub fn prelu(x: &AnyView<'_>, slope: &AnyView<'_>) -> Result<AnyArray, ProgramError> {
    let (_, laid) = lay(Rule::Unidirectional, &[x.clone(), slope.clone()])?;
    evaluate(Promotion::Numpy, &laid, |build, args| compose::prelu(build, args[0], args[1]))
}

macro_rules! variadic {
    ($($(#[$doc:meta])* $name:ident)*) => { $(
        $(#[$doc])*
        ///
        /// ```
        /// use ndarray::array;
        /// use simulcast::{AnyView, dynamic};
        ///
        /// let (a, b) = (array![[1.0], [2.0]], array![3.0, 4.0]);
        #[doc = concat!("let made = dynamic::", stringify!($name), "(&[AnyView::from(&a), AnyView::from(&b)])?;")]
        /// assert_eq!(made.shape(), [2, 2]);
        /// # Ok::<(), simulcast::ProgramError>(())
        /// ```
        ///
        /// # Errors
        ///
        /// Without operands, where they do not broadcast, or where it is not defined on their types.
        pub fn $name(operands: &[AnyView<'_>]) -> Result<AnyArray, ProgramError> {
            evaluate(Promotion::Numpy, operands, compose::$name)
        }
    )* };
}

variadic! {
    /// The largest of one array or more, element by element; NaN wins.
    max
    /// The smallest of one array or more, element by element; NaN wins.
    min
    /// The sum of one array or more, element by element, from the first to the last.
    sum
    /// The mean of one array or more, element by element.
    mean
}

/// A copy of `x` in the shape that it and `shape` have in common.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, dynamic};
///
/// let x = array![[1], [2]];
/// assert_eq!(dynamic::expand(&AnyView::from(&x), &[1, 2])?, AnyArray::from(array![[1, 1], [2, 2]]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where they have none, or no array can have it.
pub fn expand(x: &AnyView<'_>, shape: &[usize]) -> Result<AnyArray, ProgramError> {
    let (_, laid) = lay(Rule::Bidirectional { target: shape }, std::slice::from_ref(x))?;
    evaluate(Promotion::Numpy, &laid, |_, args| Ok(args[0]))
}

/// `x` with its bits shifted by `y`.
///
/// ```
/// use ndarray::array;
/// use simulcast::dynamic::{Direction, bit_shift};
/// use simulcast::{AnyArray, AnyView};
///
/// let (x, y) = (array![1_u8, 3], array![2_u8]);
/// let shifted = bit_shift(&AnyView::from(&x), &AnyView::from(&y), Direction::Left)?;
/// assert_eq!(shifted, AnyArray::from(array![4_u8, 12]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the arrays do not broadcast, or are not of integers.
pub fn bit_shift(
    x: &AnyView<'_>,
    y: &AnyView<'_>,
    direction: Direction,
) -> Result<AnyArray, ProgramError> {
    let op = match direction {
        Direction::Left => Op::LeftShift,
        Direction::Right => Op::RightShift,
    };
    op.apply(&[x.clone(), y.clone()])
}

/// What is left of `a` divided by `b`: with the sign of `a`, as C's `fmod`, or with that of `b`.
///
/// ```
/// use ndarray::array;
/// use simulcast::{AnyArray, AnyView, dynamic};
///
/// let (a, b) = (array![-7, 7], array![3]);
/// let modulo = |fmod| dynamic::modulo(&AnyView::from(&a), &AnyView::from(&b), fmod);
/// assert_eq!(modulo(true)?, AnyArray::from(array![-1, 1]));
/// assert_eq!(modulo(false)?, AnyArray::from(array![2, 1]));
/// # Ok::<(), simulcast::ProgramError>(())
/// ```
///
/// # Errors
///
/// Where the arrays do not broadcast, or are not of real numbers.
pub fn modulo(a: &AnyView<'_>, b: &AnyView<'_>, fmod: bool) -> Result<AnyArray, ProgramError> {
    let op = if fmod { Op::Fmod } else { Op::Remainder };
    op.apply(&[a.clone(), b.clone()])
}
