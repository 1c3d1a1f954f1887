//! `sum_to`: the elements of a gradient summed into those of a result.
//!
//! Axes are ordered by the gradient's strides, so that it is read in the order of memory.

use simulcast_kernels::Addend;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::moves;
use simulcast_kernels::reduce::Reducer;
use simulcast_threads::SendPtr;

use super::blocking::Rectangle;
use super::plan::{Axes, Axis, Elements, ReductionPlan};
use super::run::{Direct, Operand, Reduction, Results, Source};
use crate::layout::nest::Nest;
use crate::layout::small_vec::Inline;

/// The sums of `T`, erased: all that is compiled for a type.
#[derive(Clone, Copy)]
pub(crate) struct Sums {
    level: Level,
    reducer: Reducer,
    /// Writes a row of elements that are `stride` apart.
    gather: unsafe fn(to: *mut u8, from: *const u8, len: usize, stride: isize),
    /// Writes sums as elements that are `stride` apart.
    narrow: unsafe fn(to: *mut u8, stride: isize, sums: *const u8, count: usize),
    is_plain: bool,
}

impl Sums {
    #[inline]
    pub(crate) fn of<T: Addend>(level: Level) -> Self {
        let reducer = T::reducer(level);
        Self { level, reducer, gather: gather::<T>, narrow: narrow::<T>, is_plain: T::PLAIN }
    }

    /// Sums along the axes on which `result` does not move; strides are in elements.
    ///
    /// # Safety
    ///
    /// The shape has no 0; `grad` reaches every element of it along its strides, for reads on any thread; `to` reaches
    /// every result, for writes, and no two kept indices have one place.
    pub(crate) unsafe fn run(
        &self,
        shape: &[usize],
        (grad, strides): (*const u8, &[isize]),
        (to, result): (*mut u8, &[isize]),
        limit: Option<usize>,
    ) {
        let planned = self.plan(shape, strides, result);
        // SAFETY: by the conditions of this function.
        unsafe { self.reduction(&planned, grad, to, |reduction| reduction.run(limit)) };
    }

    fn plan(&self, shape: &[usize], strides: &[isize], result: &[isize]) -> Planned {
        // Elements count as bytes here: strides stay in elements.
        let nest = Nest::new(shape, &[strides, result], &[1, 1]);
        let loops = (0..nest.rank()).map(|at| (nest.len(at), nest.step(at)[0], nest.step(at)[1]));
        let axis = |(size, grad, result): (usize, isize, isize)| Axis {
            size,
            kept: result != 0,
            strides: Inline::from_slice(&[grad]),
        };
        let axes: Vec<Axis> = loops.clone().map(axis).collect();
        let mut kept: Vec<(usize, isize)> = Vec::new();
        for (size, _, stride) in loops.filter(|(.., stride)| *stride != 0) {
            match kept.last_mut() {
                Some(outer) if outer.1 == stride * size.cast_signed() => {
                    *outer = (outer.0 * size, stride);
                }
                _ => kept.push((size, stride)),
            }
        }
        let Reducer { element_bytes, value_bytes, .. } = self.reducer;
        let facts = Elements { element_bytes, value_bytes, bare: Some(0), pair: None };
        let plan = ReductionPlan::new(&axes, None, facts);
        Planned { plan, kept, start: (nest.starts()[0], nest.starts()[1]) }
    }

    /// # Safety
    ///
    /// As [`Self::run`].
    unsafe fn reduction(
        &self,
        planned: &Planned,
        grad: *const u8,
        to: *mut u8,
        run: impl FnOnce(&Reduction<'_>),
    ) {
        let bytes = self.reducer.element_bytes.cast_signed();
        // Elements are read on any thread, and each result is written by one task.
        let (grad, to) = (
            SendPtr::reading(grad.wrapping_offset(planned.start.0 * bytes)),
            SendPtr::new(to.wrapping_offset(planned.start.1 * bytes)),
        );
        let operand = Operand { first: grad, number: Some(0), bytes: self.reducer.element_bytes };
        let direct = Direct { along: self.reducer.along, operands: [operand; 2], bare: true };
        run(&Reduction {
            plan: &planned.plan,
            reducer: self.reducer,
            direct: Some(direct),
            source: &Gradient { sums: self, grad },
            results: &Narrowed { sums: self, kept: &planned.kept, to },
            #[cfg(feature = "program")]
            shared_row: None,
        });
    }
}

/// The plan, the kept axes with the strides of the result, and where gradient and result begin.
struct Planned {
    plan: ReductionPlan,
    kept: Vec<(usize, isize)>,
    start: (isize, isize),
}

/// A gradient whose rows are not contiguous.
struct Gradient<'g> {
    sums: &'g Sums,
    grad: SendPtr<u8>,
}

impl Source for Gradient<'_> {
    unsafe fn fill(&self, axes: &Axes, rectangle: &Rectangle, mut to: *mut u8) {
        let bytes = self.sums.reducer.element_bytes;
        let grad = self.grad.get().cast_const();
        let place = |offset: isize| grad.wrapping_offset(offset * bytes.cast_signed());
        let first = axes.offset(rectangle, 0);
        let real = (0..rectangle.len.len()).filter(|&axis| rectangle.len[axis] > 1);
        let mut loops = Inline::new();
        real.for_each(|axis| loops.push((rectangle.len[axis], axes.stride(axis, 0))));
        // SAFETY: the rectangle lies within the gradient, and `to` has room for it; sizes of plain elements are those
        // that are packed.
        unsafe {
            if self.sums.is_plain {
                return moves::pack(self.sums.level, bytes, to, place(first), &loops);
            }
            let Some((&(len, stride), outer)) = loops.split_last() else {
                return (self.sums.gather)(to, place(first), 1, 1);
            };
            for index in 0..outer.iter().map(|(len, _)| len).product() {
                let (mut at, mut left) = (first, index);
                for (len, stride) in outer.iter().rev() {
                    at += (left % len).cast_signed() * stride;
                    left /= len;
                }
                (self.sums.gather)(to, place(at), len, stride);
                to = to.add(len * bytes);
            }
        }
    }
}

/// Sums as elements of the result.
struct Narrowed<'o> {
    sums: &'o Sums,
    kept: &'o [(usize, isize)],
    to: SendPtr<u8>,
}

impl Narrowed<'_> {
    fn at(&self, offset: isize) -> *mut u8 {
        self.to.get().wrapping_offset(offset * self.sums.reducer.element_bytes.cast_signed())
    }
}

impl Results for Narrowed<'_> {
    fn place(&self, first: usize) -> Option<*mut u8> {
        let Reducer { element_bytes, value_bytes, .. } = self.sums.reducer;
        // Plain sums of the element's own size are elements.
        let same = self.sums.is_plain && element_bytes == value_bytes;
        let contiguous = matches!(self.kept, [] | [(_, 1)]);
        (same && contiguous).then(|| self.at(first.cast_signed()))
    }

    unsafe fn put(&self, first: usize, mut values: *const u8, count: usize) {
        let (size, stride) = self.kept.last().copied().unwrap_or((count, 0));
        let (mut at, end) = (first, first + count);
        while at < end {
            let run = (size - at % size).min(end - at);
            let (mut offset, mut left) = (0, at);
            for (size, stride) in self.kept.iter().rev() {
                offset += (left % size).cast_signed() * stride;
                left /= size;
            }
            // SAFETY: `run` results follow along the last kept axis, and `run` sums are left.
            unsafe {
                (self.sums.narrow)(self.at(offset), stride, values, run);
                values = values.add(run * self.sums.reducer.value_bytes);
            }
            at += run;
        }
    }
}

/// See [`Sums::gather`].
///
/// # Safety
///
/// `from` reaches `len` elements that are `stride` apart, and `to` has room for `len` elements.
unsafe fn gather<T: Addend>(to: *mut u8, from: *const u8, len: usize, stride: isize) {
    for at in 0..len {
        // SAFETY: by the conditions of this function.
        unsafe {
            let element = from.cast::<T>().offset(at.cast_signed() * stride).read();
            to.cast::<T>().add(at).write(element);
        }
    }
}

/// See [`Sums::narrow`].
///
/// # Safety
///
/// There are `count` sums, and `to` reaches `count` elements that are `stride` apart.
unsafe fn narrow<T: Addend>(to: *mut u8, stride: isize, sums: *const u8, count: usize) {
    for at in 0..count {
        // SAFETY: by the conditions of this function.
        unsafe {
            let sum = sums.cast::<T::Sum>().add(at).read();
            to.cast::<T>().offset(at.cast_signed() * stride).write(T::narrow(sum));
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "half")]
    use half::f16;
    use simulcast_threads::set_threads;

    use super::*;
    use crate::reduce::plan::Order;

    /// Row-major strides over the axes that are kept, and how many results there are.
    fn result(shape: [usize; 3], kept: usize) -> ([isize; 3], usize) {
        let (mut strides, mut all) = ([0_isize; 3], 1);
        for axis in (0..3).rev().filter(|axis| kept >> axis & 1 == 1) {
            strides[axis] = all as isize;
            all *= shape[axis];
        }
        (strides, all)
    }

    fn row_major(shape: [usize; 3]) -> [isize; 3] {
        [shape[1] * shape[2], shape[2], 1].map(usize::cast_signed)
    }

    /// The sums to the kept axes, of a gradient with these strides, in `shares` shares of the tasks.
    fn sum<T: Addend>(
        level: Level,
        shape: [usize; 3],
        (grad, strides): (&[T], [isize; 3]),
        kept: usize,
        shares: usize,
    ) -> Vec<T> {
        let sums = Sums::of::<T>(level);
        let (result, all) = result(shape, kept);
        let mut to = vec![T::narrow(T::ZERO); all];
        let planned = sums.plan(&shape, &strides, &result);
        // SAFETY: the strides stay within the vectors.
        unsafe {
            let (grad, to) = (grad.as_ptr().cast(), to.as_mut_ptr().cast());
            sums.reduction(&planned, grad, to, |reduction| reduction.run_in(shares, Some(shares)));
        }
        to
    }

    fn shapes() -> &'static [[usize; 3]] {
        match cfg!(miri) {
            true => &[[3, 5, 40], [50, 3, 5]],
            // Long rows, short ones of which some are left over, many blocks and runs, many units.
            false => &[[9, 5, 2100], [3001, 7, 5], [2, 150, 600], [1, 2, 40_000], [600, 4, 8]],
        }
    }

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn sums_have_the_same_bits_at_every_level_in_any_number_of_shares() {
        for (&shape, kept) in shapes().iter().flat_map(|shape| (0..8).map(move |k| (shape, k))) {
            let len: usize = shape.iter().product();
            // Twice the elements, so that every second one makes a gradient too.
            let grad: Vec<f32> =
                (0..2 * len).map(|n| (n * 7919 % 10_007) as f32 / 97.0 - 40.0).collect();
            for strides in [row_major(shape), row_major(shape).map(|stride| 2 * stride)] {
                let run = |level, shares| {
                    let sums = sum(level, shape, (&grad[..], strides), kept, shares);
                    sums.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                };
                set_threads(8);
                let once = run(Level::BASELINE, 1);
                for level in Level::available() {
                    for shares in [1, 2, 3, 8] {
                        let what = format!("{shape:?} {} {shares} {kept:b}", level.name());
                        assert_eq!(run(level, shares), once, "{what}");
                    }
                }
            }
        }
    }

    /// An addend that is not plain, has padding, and sums of another type.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Padded(u8, u32);

    impl Addend for Padded {
        type Sum = (u64, u8, u64);
        const ZERO: Self::Sum = (0, 0, 0);
        fn widen(self) -> Self::Sum {
            (u64::from(self.1), self.0, 1)
        }
        fn plus(a: Self::Sum, b: Self::Sum) -> Self::Sum {
            (a.0 + b.0, a.1.wrapping_add(b.1), a.2 + b.2)
        }
        fn narrow(sum: Self::Sum) -> Self {
            Self(sum.1, (sum.0 + 1000 * sum.2) as u32)
        }
    }

    /// An addend without a size.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Nothing;

    impl Addend for Nothing {
        type Sum = Self;
        const ZERO: Self = Self;
        fn widen(self) -> Self {
            self
        }
        fn plus(_: Self, _: Self) -> Self {
            Self
        }
        fn narrow(sum: Self) -> Self {
            sum
        }
    }

    // [E_BROADCAST_ANY_FUNC_3040]
    #[test]
    fn integers_and_types_of_the_users_own_are_summed_exactly_in_every_layout() {
        for (&shape, kept) in shapes().iter().flat_map(|shape| (0..8).map(move |k| (shape, k))) {
            let len: usize = shape.iter().product();
            let number = |n: usize| (n * 7919 % 1009) as u32;
            let ints: Vec<u32> = (0..2 * len).map(number).collect();
            let padded: Vec<Padded> = (0..2 * len).map(|n| Padded(n as u8, number(n))).collect();
            let [a, b, c] = shape.map(usize::cast_signed);
            let layouts = [
                [b * c, c, 1],
                // Every second element, the first axis innermost, and one row for all.
                [2 * b * c, 2 * c, 2],
                [1, a, a * b],
                [0, c, 1],
            ];
            let (steps, all) = result(shape, kept);
            for strides in layouts {
                let (mut sums, mut count) = (vec![Padded(0, 0); all], vec![0_u32; all]);
                for n in 0..len {
                    let index = [n / (shape[1] * shape[2]), n / shape[2] % shape[1], n % shape[2]];
                    let offset = |strides: [isize; 3]| {
                        (0..3).map(|axis| index[axis] as isize * strides[axis]).sum::<isize>()
                            as usize
                    };
                    let (to, from) = (offset(steps), padded[offset(strides)]);
                    count[to] += 1;
                    sums[to] = Padded(sums[to].0.wrapping_add(from.0), sums[to].1 + from.1);
                }
                let what = format!("{shape:?} {kept:b} {strides:?}");
                for (shares, level) in [(1, Level::BASELINE), (3, Level::for_closures())] {
                    let own = sum(level, shape, (&ints[..], strides), kept, shares);
                    let expected: Vec<u32> = sums.iter().map(|sum| sum.1).collect();
                    assert_eq!(own, expected, "{what}");
                    let own = sum(level, shape, (&padded[..], strides), kept, shares);
                    let counted = sums.iter().zip(&count);
                    let expected: Vec<Padded> =
                        counted.map(|(sum, count)| Padded(sum.0, sum.1 + 1000 * count)).collect();
                    assert_eq!(own, expected, "{what}");
                    let nothing = vec![Nothing; 2 * len];
                    let own = sum(level, shape, (&nothing[..], strides), kept, shares);
                    assert_eq!(own, vec![Nothing; all], "{what}");
                }
            }
        }
    }

    // [E_BROADCAST_ANY_FUNC_3040] [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    #[cfg(feature = "half")]
    fn halves_are_summed_as_the_floats_that_they_are() {
        // Rows and columns of more than whole vectors; sums that a half can hold.
        let shape = if cfg!(miri) { [1, 11, 79] } else { [3, 41, 2071] };
        let len = shape.iter().product::<usize>();
        let halves: Vec<f16> =
            (0..len).map(|n| f16::from_f32((n * 7919 % 10_007) as f32 / 100_000.0)).collect();
        let floats: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
        for kept in 0..8 {
            let strides = row_major(shape);
            let expected = sum(Level::BASELINE, shape, (&floats[..], strides), kept, 1);
            let expected: Vec<f16> = expected.into_iter().map(f16::from_f32).collect();
            assert!(expected.iter().all(|sum| sum.is_finite()));
            for level in Level::available() {
                let sums = sum(level, shape, (&halves[..], strides), kept, 2);
                assert_eq!(sums, expected, "{} {kept:b}", level.name());
            }
        }
    }

    #[test]
    fn the_order_follows_from_the_shape_and_the_strides() {
        #[derive(Debug, PartialEq)]
        enum Chosen {
            WholeRows {
                blocks: usize,
            },
            Blocks {
                columns: usize,
                side_by_side: usize,
                runs: usize,
                parts: usize,
                in_place: bool,
            },
        }
        use Chosen::{Blocks, WholeRows};
        let large = 1 << 12;
        let cases = [
            // Rows that a block holds, and longer ones.
            ([1, large, large], 0b010, 1, WholeRows { blocks: 512 }),
            (
                [1, 4, 40_000],
                0b010,
                1,
                Blocks { columns: 1, side_by_side: 1, runs: 3, parts: 3, in_place: false },
            ),
            // Everything: one result of many runs.
            (
                [1, large, large],
                0b000,
                1,
                Blocks { columns: 1, side_by_side: 1, runs: 1024, parts: 64, in_place: false },
            ),
            // Columns: 128 rows a run.
            (
                [1, large, large],
                0b100,
                1,
                Blocks { columns: 1, side_by_side: 1, runs: 32, parts: 32, in_place: true },
            ),
            // Narrow rows go side by side, a power of two of them.
            (
                [1, 1_000_000, 3],
                0b100,
                1,
                Blocks { columns: 1, side_by_side: 128, runs: 46, parts: 46, in_place: true },
            ),
            // Many units share nothing.
            (
                [256, 256, 256],
                0b101,
                1,
                Blocks { columns: 1, side_by_side: 2, runs: 1, parts: 1, in_place: true },
            ),
            // Columns that are not contiguous are gathered first.
            (
                [1, large, large],
                0b100,
                2,
                Blocks { columns: 1, side_by_side: 1, runs: 32, parts: 32, in_place: false },
            ),
        ];
        for (shape, kept, step, expected) in cases {
            let strides = row_major(shape).map(|stride| step * stride);
            let sums = Sums::of::<f32>(Level::BASELINE);
            let plan = sums.plan(&shape, &strides, &result(shape, kept).0).plan;
            let chosen = match &plan.order {
                Order::WholeRows { rows } => WholeRows { blocks: rows.blocks },
                Order::Blocks(own) => Blocks {
                    columns: own.columns.blocks,
                    side_by_side: own.side_by_side,
                    runs: own.runs,
                    parts: own.parts,
                    in_place: own.in_place.is_some(),
                },
                Order::SharedRow { .. } => unreachable!("one operand"),
            };
            assert_eq!(chosen, expected, "{shape:?} {kept:b} {plan:?}");
        }
    }
}
