//! Loops of reductions: many elements become one value, in an order that depends on their number alone.
//!
//! ```text
//! along_row    each row becomes one value: lanes side by side, joined in halves at the end
//! across_rows  rows become one row of values: eight rows at a time, in registers
//! shared_row   one row meets many: an operation of two rows is joined as it is computed   (feature `ops`)
//! fused        along_row and shared_row of products and distances                         (feature `ops`)
//! table        the loops of each way to join and element type                             (feature `ops`)
//! pairwise     the order in which partial values are joined: the one tree of all reductions
//! ```
//!
//! The loops are erased to pointers ([`Reducer`]), so that the engine over them is compiled once, and a type of the
//! user's costs its innermost loops alone. No level fuses or reorders operations: results are bit-equal at all of them.

mod across_rows;
mod along_row;
#[cfg(feature = "ops")]
mod fused;
pub mod pairwise;
#[cfg(feature = "ops")]
mod shared_row;
#[cfg(feature = "ops")]
mod table;
#[cfg(all(test, feature = "ops"))]
mod tests;

use std::marker::PhantomData;

use crate::Addend;
use crate::cpu::level::Level;

pub use across_rows::AcrossRows;
pub use along_row::{AlongRow, Rows};
#[cfg(feature = "ops")]
pub use fused::{fused_along_row, fused_shared_row};
#[cfg(feature = "ops")]
pub use shared_row::SharedRow;
#[cfg(feature = "ops")]
pub use table::{JoinOp, reducer};

/// `to[i] = join(to[i], later[i])` for `count` values; the two do not overlap.
pub type JoinRows = unsafe fn(to: *mut u8, later: *const u8, count: usize);

/// The loops that reduce elements of one type in one way.
#[derive(Clone, Copy, Debug)]
pub struct Reducer {
    pub along: AlongRow,
    pub across: AcrossRows,
    pub join: JoinRows,
    /// The size of an element, and of the value that elements are joined in.
    pub element_bytes: usize,
    pub value_bytes: usize,
}

impl Reducer {
    #[inline]
    pub(crate) fn new<R: Reduce<B = ()>>(level: Level) -> Self {
        const { assert!(align_of::<R::Value>() <= 64, "values lie in cache lines") };
        Self {
            along: along_row::along_row::<R>(level),
            across: across_rows::across_rows::<R>(level),
            join: join_rows::<R>,
            element_bytes: size_of::<R::A>(),
            value_bytes: size_of::<R::Value>(),
        }
    }

    /// The sums of addends.
    #[inline]
    pub(crate) fn sums<T: Addend>(level: Level) -> Self {
        Self::new::<SumOf<T>>(level)
    }
}

/// What elements become before they are joined, and how two values become one.
pub(crate) trait Reduce {
    /// The operands' elements; where there is one operand, `B` is `()`.
    type A: Copy;
    type B: Copy;
    type Value: Copy;

    const ARITY: usize = 1;

    /// Joined with any value it gives that value.
    const NEUTRAL: Self::Value;

    /// Whether values may be moved as integers of their size, which is 1, 2, 4, 8 or 16.
    const PLAIN: bool = true;

    fn term(a: Self::A, b: Self::B) -> Self::Value;

    fn join(a: Self::Value, b: Self::Value) -> Self::Value;

    /// `N` neighbouring terms, a multiple of eight.
    ///
    /// # Safety
    ///
    /// Both pointers reach that many elements; with `AVX2`, the caller is compiled for it and for F16C.
    #[inline(always)]
    unsafe fn terms<const AVX2: bool, const N: usize>(
        a: *const Self::A,
        b: *const Self::B,
    ) -> [Self::Value; N] {
        // A loop: `array::from_fn` stays a call in crates that are compiled without LTO, and is not vectorised.
        let mut terms = [Self::NEUTRAL; N];
        for (at, term) in terms.iter_mut().enumerate() {
            // SAFETY: by the condition of this function.
            *term = unsafe { Self::term(a.add(at).read(), b.add(at).read()) };
        }
        terms
    }
}

/// The sum of addends.
struct SumOf<T>(PhantomData<T>);

impl<T: Addend> Reduce for SumOf<T> {
    type A = T;
    type B = ();
    type Value = T::Sum;
    const NEUTRAL: T::Sum = T::NEUTRAL;
    const PLAIN: bool = T::PLAIN;

    #[inline(always)]
    fn term(a: T, _none: ()) -> T::Sum {
        a.widen()
    }

    #[inline(always)]
    fn join(a: T::Sum, b: T::Sum) -> T::Sum {
        T::plus(a, b)
    }

    #[inline(always)]
    unsafe fn terms<const AVX2: bool, const N: usize>(
        a: *const T,
        _none: *const (),
    ) -> [T::Sum; N] {
        // SAFETY: by the condition of this function.
        unsafe { T::widen_all::<AVX2, N>(a) }
    }
}

/// [`JoinRows`] of a reduction. Compiled for the baseline alone: it joins one row of values for some hundred rows of
/// elements.
///
/// # Safety
///
/// As [`JoinRows`] says.
unsafe fn join_rows<R: Reduce>(to: *mut u8, later: *const u8, count: usize) {
    let (to, later) = (to.cast::<R::Value>(), later.cast::<R::Value>());
    for at in 0..count {
        // SAFETY: there are `count` values in both.
        unsafe { to.add(at).write(R::join(to.add(at).read(), later.add(at).read())) };
    }
}
