//! What becomes of the values of a reduction: a mean is a sum over the number of its terms, and results have a type of
//! their own.

use crate::by_name::program::build::graph::{Bytes, Value};
use crate::by_name::program::front::axes::Fold;
use crate::reduce::run::Results;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::{DType, DTypeKind, Scalar};
use simulcast_kernels::op::Op;
use simulcast_kernels::ops::{self, Conversion, Kernel};
use simulcast_kernels::pack::pack;
use simulcast_kernels::reduce::{JoinOp, Reducer, reducer};
use simulcast_kernels::tuning::REDUCE_QUOTIENTS;
use simulcast_threads::SendPtr;

/// How a reduction of a program joins, and what it makes of values.
pub(in crate::by_name::program::run) struct Finish {
    pub(super) join: JoinOp,
    pub(super) reducer: Reducer,
    /// The value of no elements.
    identity: Bytes,
    /// A division by the number of terms.
    divide: Option<(Kernel, Bytes)>,
    /// A cast to the type of the result.
    cast: Option<Conversion>,
    /// The bytes of a result.
    result_bytes: usize,
}

impl Finish {
    /// The reduction of `count` elements of `dtype` to results of another type.
    pub(in crate::by_name::program::run) fn new(
        fold: Fold,
        dtype: DType,
        count: usize,
        result: DType,
        level: Level,
    ) -> Option<Self> {
        let (join, start) = match fold {
            Fold::Sum | Fold::Mean => (JoinOp::Sum, 0),
            Fold::Product => (JoinOp::Product, 1),
            Fold::Maximum => (JoinOp::Maximum, 0),
            Fold::Minimum => (JoinOp::Minimum, 0),
        };
        let number = |number: i128| {
            let number = match dtype.kind() {
                DTypeKind::Bool => Scalar::Bool(number == 1),
                DTypeKind::Signed | DTypeKind::Unsigned => Scalar::Int(dtype, number),
                DTypeKind::Float => Scalar::Float(dtype, number as f64),
                _ => Scalar::Complex(dtype, num_complex::Complex::new(number as f64, 0.0)),
            };
            match Value::new(&number) {
                Value::Plain(bytes) => Some(bytes),
                _ => None,
            }
        };
        let divide = match fold {
            Fold::Mean => {
                let divide = ops::kernels(Op::Divide, dtype, level)?.cached;
                Some((divide, number(count as i128)?))
            }
            _ => None,
        };
        let cast = match dtype {
            // A value may be any byte, of which all but 0 are true.
            DType::Bool => Some(ops::cast(DType::U8, result, level)?),
            _ if dtype == result => None,
            _ => Some(ops::cast(dtype, result, level)?),
        };
        let (reducer, identity) = (reducer(join, dtype, level)?, number(start)?);
        Some(Self { join, reducer, identity, divide, cast, result_bytes: result.size() })
    }

    /// Makes `count` results of values.
    ///
    /// # Safety
    ///
    /// `values` has `count` values, `to` has room for `count` results, and the two do not overlap.
    pub(in crate::by_name::program::run) unsafe fn finish(
        &self,
        mut to: *mut u8,
        mut values: *const u8,
        count: usize,
    ) {
        let mut quotients = [[0_u64; 2]; REDUCE_QUOTIENTS];
        let both = self.divide.is_some() && self.cast.is_some();
        let tile = if both { REDUCE_QUOTIENTS } else { count };
        let mut left = count;
        while left > 0 {
            let count = tile.min(left);
            let mut from = values;
            // SAFETY: there are `count` values and results, of the kernels' types; the divisor is one that repeats.
            unsafe {
                if let Some((divide, by)) = &self.divide {
                    let quotients = quotients.as_mut_ptr().cast();
                    let to = if self.cast.is_some() { quotients } else { to };
                    // The second operand repeats.
                    divide(to, &[from, (&raw const *by).cast(), std::ptr::null()], 0b10, count);
                    from = to;
                }
                match self.cast {
                    Some(cast) => {
                        let sizes = [self.reducer.value_bytes, self.result_bytes];
                        cast.run(to, from, sizes, count);
                    }
                    None if self.divide.is_some() => {}
                    None => std::ptr::copy_nonoverlapping(from, to, count * self.result_bytes),
                }
                to = to.add(count * self.result_bytes);
                values = values.add(count * self.reducer.value_bytes);
            }
            left -= count;
        }
    }

    /// The results of no elements, `len` of them.
    ///
    /// # Safety
    ///
    /// `out` has room for `len` results.
    pub(in crate::by_name::program::run) unsafe fn nothing(&self, out: *mut u8, len: usize) {
        let mut one = [0_u64; 2];
        let one: *mut u8 = (&raw mut one).cast();
        // SAFETY: a value of any type fits, and it is repeated.
        unsafe {
            self.finish(one, (&raw const self.identity).cast(), 1);
            pack::<false>(self.result_bytes, out, one, &[(len, 0)]);
        }
    }
}

/// Results that follow one another.
pub(super) struct Row<'r> {
    pub(super) finish: &'r Finish,
    pub(super) to: SendPtr<u8>,
}

impl Results for Row<'_> {
    fn place(&self, first: usize) -> Option<*mut u8> {
        let as_they_are = self.finish.divide.is_none() && self.finish.cast.is_none();
        as_they_are.then(|| self.to.get().wrapping_add(first * self.finish.result_bytes))
    }

    unsafe fn put(&self, first: usize, values: *const u8, count: usize) {
        // SAFETY: by the conditions of the trait.
        unsafe {
            let to = self.to.get().add(first * self.finish.result_bytes);
            self.finish.finish(to, values, count);
        }
    }
}
