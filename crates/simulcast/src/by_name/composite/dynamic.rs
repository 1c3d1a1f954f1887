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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards higher values.
    Left,
    /// Towards lower values.
    Right,
}

/// `min(max(x, lo), hi)`, with the bounds that there are; where `lo` is above `hi`, `hi`.
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
/// # Errors
///
/// Where they have none, or no array can have it.
pub fn expand(x: &AnyView<'_>, shape: &[usize]) -> Result<AnyArray, ProgramError> {
    let (_, laid) = lay(Rule::Bidirectional { target: shape }, std::slice::from_ref(x))?;
    evaluate(Promotion::Numpy, &laid, |_, args| Ok(args[0]))
}

/// `x` with its bits shifted by `y`.
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
/// # Errors
///
/// Where the arrays do not broadcast, or are not of real numbers.
pub fn modulo(a: &AnyView<'_>, b: &AnyView<'_>, fmod: bool) -> Result<AnyArray, ProgramError> {
    let op = if fmod { Op::Fmod } else { Op::Remainder };
    op.apply(&[a.clone(), b.clone()])
}
