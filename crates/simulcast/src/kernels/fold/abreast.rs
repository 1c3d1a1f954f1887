//! Folds abreast: an operation on a row that many rows share, folded for all of them at once.
//!
//! ```text
//! one      the row that is shared: each of its elements is repeated
//! many     the other rows, turned: element k of all of them, then element k + 1
//! out      one result a column; a vector of them is kept where a row alone would keep one value
//! ```
//!
//! What the operation gives is never written out, and nothing is joined across a vector. Each result
//! is joined in the order of a row alone, so that it has the same bits.

use std::marker::PhantomData;

use super::super::float::Float;
use super::super::{Body, body};
use super::{Fold, Joint, LEAF, Maximum, Minimum, Product, SHORT, Sum, WIDE};
use crate::level::{Kind, Level};
use crate::{DType, Op};

/// `out[c]` becomes the fold over `k` of what the operation makes of `one[k * step]` and
/// `many[k * pitch + c]`: `columns` of them, each of `len` elements, at least one and at most
/// [`ABREAST`]. Rows of `many` are readable up to a multiple of [`WIDE`] bytes, and no result
/// overlaps an operand.
pub(crate) type Abreast = unsafe fn(
    out: *mut u8,
    one: (*const u8, isize),
    many: (*const u8, usize),
    columns: usize,
    len: usize,
);

/// The most elements of a row that is folded abreast.
pub(crate) const ABREAST: usize = LEAF;

/// The fold of some operations, each after the one that it reads; the first reads one and many, or
/// many and one where they are `swapped`. None where there is no such loop.
pub(crate) fn abreast(
    fold: Fold,
    ops: &[Op],
    swapped: bool,
    dtype: DType,
    level: Level,
) -> Option<Abreast> {
    match dtype {
        DType::F32 => of::<f32>(fold, ops, swapped, level),
        DType::F64 => of::<f64>(fold, ops, swapped, level),
        _ => None,
    }
}

macro_rules! crossings {
    ($($name:ident ([$($op:ident),+] $swapped:pat) |$a:ident, $b:ident| $value:expr;)*) => {
        $(
            struct $name<T>(PhantomData<T>);
            impl<T: Float> Body for $name<T> {
                body!(Light 2 T { $value } $a: T, $b: T, _none: ());
            }
        )*

        fn of<T: Float>(fold: Fold, ops: &[Op], swapped: bool, level: Level) -> Option<Abreast> {
            match (ops, swapped) {
                $(([$(Op::$op),+], $swapped) => Some(folded::<$name<T>, T>(fold, level)),)*
                _ => None,
            }
        }
    };
}

crossings! {
    Both ([Add] _) |a, b| a + b;
    Less ([Subtract] false) |a, b| a - b;
    LessThan ([Subtract] true) |a, b| b - a;
    Times ([Multiply] _) |a, b| a * b;
    Squared ([Subtract, Square] _) |a, b| (a - b) * (a - b);
    Distance ([Subtract, Absolute] _) |a, b| (a - b).magnitude();
}

fn folded<B: Body<A = T, B = T, C = (), Out = T>, T: Float>(fold: Fold, level: Level) -> Abreast {
    match fold {
        Fold::Sum => columns::<B, Sum<T>>(level),
        Fold::Product => columns::<B, Product<T>>(level),
        Fold::Maximum => columns::<B, Maximum<T>>(level),
        Fold::Minimum => columns::<B, Minimum<T>>(level),
    }
}

fn columns<B: Body<C = ()>, J: Joint<Value = B::Out>>(level: Level) -> Abreast {
    match level.kind() {
        Kind::Baseline => baseline::<B, J>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => avx2::<B, J>,
    }
}

macro_rules! shims {
    ($($(#[$meta:meta])* $name:ident $fma:literal;)*) => { $(
        /// The fold of every column, compiled for a level.
        ///
        /// # Safety
        ///
        /// As [`Abreast`] says, and the machine has the features.
        $(#[$meta])*
        unsafe fn $name<B: Body<C = ()>, J: Joint<Value = B::Out>>(
            out: *mut u8,
            (one, step): (*const u8, isize),
            (many, pitch): (*const u8, usize),
            columns: usize,
            len: usize,
        ) {
            let rows = Rows::<B> { one: one.cast(), step, many: many.cast(), pitch, len };
            // SAFETY: the caller keeps the conditions.
            unsafe {
                match size_of::<B::Out>() {
                    4 => every_column::<B, J, $fma, { WIDE / 4 }>(out.cast(), &rows, columns),
                    _ => every_column::<B, J, $fma, { WIDE / 8 }>(out.cast(), &rows, columns),
                }
            }
        }
    )* };
}

shims! {
    baseline false;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,movbe")]
    avx2 true;
}

/// What is folded, from one column on.
struct Rows<B: Body> {
    one: *const B::A,
    step: isize,
    many: *const B::B,
    pitch: usize,
    len: usize,
}

/// # Safety
///
/// As [`Abreast`] says; `W` elements are [`WIDE`] bytes at most.
#[inline(always)]
unsafe fn every_column<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const FMA: bool,
    const W: usize,
>(
    out: *mut B::Out,
    rows: &Rows<B>,
    columns: usize,
) {
    let mut done = 0;
    while done < columns {
        let part = Rows { many: rows.many.wrapping_add(done), ..*rows };
        // SAFETY: whole vectors of the rows are readable, and `columns` results are writable.
        unsafe {
            let values = some_columns::<B, J, FMA, W>(&part);
            let count = W.min(columns - done);
            if count == W {
                out.add(done).cast::<[B::Out; W]>().write_unaligned(values);
            } else {
                out.add(done).copy_from_nonoverlapping(values.as_ptr(), count);
            }
        }
        done += W;
    }
}

/// The folds of `W` columns, in the order of [`super::every_row`].
///
/// # Safety
///
/// There are so many.
#[inline(always)]
unsafe fn some_columns<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const FMA: bool,
    const W: usize,
>(
    rows: &Rows<B>,
) -> [B::Out; W] {
    let both = joined::<J, W>;
    // SAFETY: there are `W` columns.
    let lane = |first, lanes| unsafe { lane::<B, J, FMA, W>(rows, first, lanes) };
    if rows.len < SHORT {
        return lane(0, 1);
    }
    if rows.len < super::long_from::<B::Out>() {
        // Eight lanes are joined in pairs, the first with the fifth: as they are made, so that few
        // of them are kept.
        let even = both(both(lane(0, 8), lane(4, 8)), both(lane(2, 8), lane(6, 8)));
        let odd = both(both(lane(1, 8), lane(5, 8)), both(lane(3, 8), lane(7, 8)));
        return both(even, odd);
    }
    let lanes = WIDE / size_of::<B::Out>();
    // Place k holds what `1 << k` lanes gave, until as many follow; the last is the result.
    let mut places = [[J::NEUTRAL; W]; 6];
    let last = lanes.trailing_zeros() as usize;
    for count in 0..lanes {
        let first = count.reverse_bits() >> (usize::BITS as usize - last);
        let mut value = lane(first, lanes);
        let full = count.trailing_ones() as usize;
        for early in &places[..full] {
            value = both(*early, value);
        }
        places[full] = value;
    }
    places[last]
}

/// Every `lanes`th element of `W` columns, from `first` on, joined one after the other.
///
/// # Safety
///
/// There are so many columns.
#[inline(always)]
unsafe fn lane<B: Body<C = ()>, J: Joint<Value = B::Out>, const FMA: bool, const W: usize>(
    rows: &Rows<B>,
    first: usize,
    lanes: usize,
) -> [B::Out; W] {
    let mut values = [J::NEUTRAL; W];
    let mut at = first;
    while at < rows.len {
        // SAFETY: element `at` of the row, and of each of `W` columns.
        let (a, many) = unsafe {
            let many = rows.many.add(at * rows.pitch).cast::<[B::B; W]>();
            (rows.one.offset(at.cast_signed() * rows.step).read(), &*many)
        };
        for (value, &b) in values.iter_mut().zip(many) {
            *value = J::join(*value, B::at::<FMA>(a, b, ()));
        }
        at += lanes;
    }
    values
}

#[inline(always)]
fn joined<J: Joint, const W: usize>(a: [J::Value; W], b: [J::Value; W]) -> [J::Value; W] {
    std::array::from_fn(|at| J::join(a[at], b[at]))
}

#[cfg(test)]
mod tests {
    use super::super::fold;
    use super::*;

    #[test]
    fn rows_abreast_have_the_bits_of_rows_alone_at_every_level() {
        fn case<T: Copy + crate::Element + std::fmt::Debug>(
            of: impl Fn(f64) -> T,
            ops: &[Op],
            make: impl Fn(T, T) -> T,
            bits: impl Fn(T) -> u64,
        ) {
            let lens = [1, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 300, ABREAST];
            for (len, columns) in lens.into_iter().flat_map(|len| [1, 31, 33, 70].map(|c| (len, c)))
            {
                if cfg!(miri) && (len > 70 || columns > 33) {
                    continue;
                }
                // Rows that are longer than the columns, to whole vectors; numbers whose order matters.
                let pitch = (columns + 3).next_multiple_of(WIDE / size_of::<T>());
                let number = |at: usize| of((at as f64 * 0.7).sin() * 3.0 + 0.01);
                let one: Vec<T> = (0..2 * len).map(|at| number(at * 3 + 1)).collect();
                let many: Vec<T> = (0..len * pitch).map(number).collect();
                for op in [Fold::Sum, Fold::Product, Fold::Maximum, Fold::Minimum] {
                    for (level, swapped) in Level::available()
                        .into_iter()
                        .flat_map(|level| [(level, false), (level, true)])
                    {
                        let mut out = vec![of(0.5); columns + 1];
                        // SAFETY: `one` has every other element, and `many` whole rows.
                        unsafe {
                            abreast(op, ops, swapped, T::DTYPE, level).unwrap()(
                                out.as_mut_ptr().cast(),
                                (one.as_ptr().cast(), 2),
                                (many.as_ptr().cast(), pitch),
                                columns,
                                len,
                            );
                        }
                        for (column, out) in out[..columns].iter().enumerate() {
                            let row: Vec<T> = (0..len)
                                .map(|k| (one[2 * k], many[k * pitch + column]))
                                .map(|(a, b)| if swapped { make(b, a) } else { make(a, b) })
                                .collect();
                            let mut alone = of(0.0);
                            // SAFETY: one row.
                            unsafe {
                                fold(op, T::DTYPE, Level::BASELINE).unwrap()(
                                    (&raw mut alone).cast(),
                                    row.as_ptr().cast(),
                                    1,
                                    len,
                                    len,
                                );
                            }
                            let what = format!("{op:?} {ops:?} of {len} {}", level.name());
                            assert_eq!(bits(*out), bits(alone), "{what}: {out:?} is not {alone:?}");
                        }
                        assert_eq!(bits(out[columns]), bits(of(0.5)));
                    }
                }
            }
        }
        macro_rules! both {
            ($($ops:expr => |$a:ident, $b:ident| $make:expr;)*) => { $(
                case::<f32>(|x| x as f32, &$ops, |$a, $b| $make, |x| x.to_bits().into());
                case::<f64>(|x| x, &$ops, |$a, $b| $make, f64::to_bits);
            )* };
        }
        both! {
            [Op::Add] => |a, b| a + b;
            [Op::Subtract] => |a, b| a - b;
            [Op::Multiply] => |a, b| a * b;
            [Op::Subtract, Op::Square] => |a, b| (a - b) * (a - b);
            [Op::Subtract, Op::Absolute] => |a, b| (a - b).abs();
        }
    }
}
