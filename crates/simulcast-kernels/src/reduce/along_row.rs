//! Folds of rows, one after the other.
//!
//! Values side by side are joined in pairs at the end. Within one row those joints are a few elements
//! wide; so rows that are not long leave their values behind, and are joined some dozens at a time,
//! one in each lane.

use std::hint::black_box;
use std::marker::PhantomData;

use super::{Joint, LEAF, SHORT, WIDE, long_from};
use crate::compiled_for_levels;
use crate::cpu::level::{Kind, Level};
use crate::ops::{Body, body};
use crate::pack::pack;

/// The rows of an operand: where the first begins, how many elements the next is away, and the step
/// within a row: 1, or 0 where one element is the whole row.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub first: *const u8,
    pub stride: isize,
    pub step: usize,
}

/// `out[r]` becomes the fold of what the operation makes of row `r` of each operand: `rows` rows of
/// `len` elements. Where the operation has one operand, the second is not read, and the step of the
/// first is one. The result does not overlap the operands. Of no elements it is what changes nothing:
/// 0, 1, or the smallest or largest value.
pub type RowFold = unsafe fn(out: *mut u8, ins: [Rows; 2], rows: usize, len: usize);

/// The operation that is none.
pub(super) struct Same<T>(PhantomData<T>);

impl<T: Copy> Body for Same<T> {
    body!(Light 1 T { a } a: T, _unused: (), _none: ());
}

/// The rows whose values are joined at once.
const MANY: usize = 32;

pub(super) fn rows<B: Body<C = ()>, J: Joint<Value = B::Out>>(level: Level) -> RowFold {
    match level.kind() {
        Kind::Baseline => every_row::<B, J, false>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => every_row_avx2::<B, J>,
    }
}

compiled_for_levels! {
    /// [`every_row`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn every_row_avx2<B: Body<C = ()>, J: Joint<Value = B::Out>>(
        out: *mut u8,
        ins: [Rows; 2],
        rows: usize,
        len: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { every_row::<B, J, true>(out, ins, rows, len) }
    }
}

/// A row of each operand, and the steps within.
struct Row<B: Body> {
    a: *const B::A,
    b: *const B::B,
    steps: [usize; 2],
}

impl<B: Body<C = ()>> Row<B> {
    /// Row `at`.
    #[inline(always)]
    fn new(ins: [Rows; 2], at: usize) -> Self {
        let (a, b) = (ins[0].first.cast::<B::A>(), ins[1].first.cast::<B::B>());
        let at = at.cast_signed();
        Self {
            a: a.wrapping_offset(at * ins[0].stride),
            b: b.wrapping_offset(at * ins[1].stride),
            // What stands alone never repeats: the compiler is to know.
            steps: if B::ARITY == 1 { [1; 2] } else { [ins[0].step, ins[1].step] },
        }
    }

    /// The rest of the row, from an element on.
    #[inline(always)]
    fn from(&self, at: usize) -> Self {
        let [a, b] = self.steps;
        Self { a: self.a.wrapping_add(at * a), b: self.b.wrapping_add(at * b), steps: self.steps }
    }

    /// What the operation makes of an element.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    unsafe fn at<const FMA: bool>(&self, at: usize) -> B::Out {
        let place = self.from(at);
        // SAFETY: by the condition of this function.
        unsafe { B::at::<FMA>(place.a.read(), place.b.read(), ()) }
    }
}

/// The fold of every row.
///
/// # Safety
///
/// As [`RowFold`] says; with `AVX2`, the caller is compiled for it.
#[inline(always)]
unsafe fn every_row<B: Body<C = ()>, J: Joint<Value = B::Out>, const AVX2: bool>(
    out: *mut u8,
    ins: [Rows; 2],
    rows: usize,
    len: usize,
) {
    let out = out.cast::<B::Out>();
    if len >= SHORT && len < long_from::<B::Out>() {
        // SAFETY: the caller keeps the conditions.
        return unsafe { middling::<B, J, AVX2>(out, ins, rows, len) };
    }
    for at in 0..rows {
        let row = Row::<B>::new(ins, at);
        // SAFETY: the row is one of those that the caller vouches for.
        unsafe {
            let value = if len < SHORT {
                (0..len).fold(J::NEUTRAL, |all, at| J::join(all, row.at::<AVX2>(at)))
            } else {
                long::<B, J, AVX2>(&row, len)
            };
            out.add(at).write(value);
        }
    }
}

/// Rows that leave eight values each, which are turned: the first of all rows, then the second.
///
/// # Safety
///
/// As [`every_row`].
#[inline(always)]
unsafe fn middling<B: Body<C = ()>, J: Joint<Value = B::Out>, const AVX2: bool>(
    out: *mut B::Out,
    ins: [Rows; 2],
    rows: usize,
    len: usize,
) {
    const LANES: usize = SHORT;
    let mut left = [[J::NEUTRAL; LANES]; MANY];
    let mut turned = [[J::NEUTRAL; MANY]; LANES];
    let mut done = 0;
    while done < rows {
        let count = MANY.min(rows - done);
        for (at, left) in left.iter_mut().enumerate().take(count) {
            // SAFETY: the row is one of those that the caller vouches for.
            unsafe { side_by_side::<B, J, LANES, AVX2>(left, &Row::new(ins, done + at), len) };
        }
        // SAFETY: both have that many rows and columns, plain data.
        unsafe {
            let (to, from) = (turned.as_mut_ptr().cast(), left.as_ptr().cast());
            let loops = [(LANES, 1), (MANY, LANES.cast_signed())];
            pack::<AVX2>(size_of::<B::Out>(), to, from, &loops);
        }
        let mut width = LANES / 2;
        while width > 0 {
            let (low, high) = turned.split_at_mut(width);
            for (low, high) in low.iter_mut().zip(high) {
                for (low, &high) in low.iter_mut().zip(&*high) {
                    *low = J::join(*low, high);
                }
            }
            width /= 2;
        }
        // SAFETY: there is room for `count` more results.
        unsafe {
            if count == MANY {
                out.add(done).cast::<[B::Out; MANY]>().write(turned[0]);
            } else {
                out.add(done).copy_from_nonoverlapping(turned[0].as_ptr(), count);
            }
        }
        done += count;
    }
}

/// Leaf after leaf, joined in pairs, and the pairs in pairs.
///
/// # Safety
///
/// The row has `len` elements, at least one.
#[inline(always)]
unsafe fn long<B: Body<C = ()>, J: Joint<Value = B::Out>, const AVX2: bool>(
    row: &Row<B>,
    len: usize,
) -> B::Out {
    // Place k holds what `1 << k` leaves gave, where bit k of their number is set.
    let mut places = [J::NEUTRAL; usize::BITS as usize];
    let mut leaves = 0_usize;
    for start in (0..len).step_by(LEAF) {
        let (part, count) = (row.from(start), LEAF.min(len - start));
        // SAFETY: a part of the row.
        let mut value = unsafe {
            match size_of::<B::Out>() {
                1 => joined::<B, J, WIDE, AVX2>(&part, count),
                2 => joined::<B, J, { WIDE / 2 }, AVX2>(&part, count),
                4 => joined::<B, J, { WIDE / 4 }, AVX2>(&part, count),
                8 => joined::<B, J, { WIDE / 8 }, AVX2>(&part, count),
                _ => joined::<B, J, { WIDE / 16 }, AVX2>(&part, count),
            }
        };
        if len <= LEAF {
            return value;
        }
        let full = leaves.trailing_ones() as usize;
        for &early in &places[..full] {
            value = J::join(early, value);
        }
        places[full] = value;
        leaves += 1;
    }
    let full = (0..usize::BITS as usize).filter(|place| leaves >> place & 1 == 1);
    full.map(|place| places[place]).reduce(|late, early| J::join(early, late)).unwrap_or(J::NEUTRAL)
}

/// `LANES` values side by side, joined in pairs.
///
/// # Safety
///
/// The row has `len` elements, at least one.
#[inline(always)]
unsafe fn joined<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const LANES: usize,
    const AVX2: bool,
>(
    row: &Row<B>,
    len: usize,
) -> B::Out {
    let mut values = [J::NEUTRAL; LANES];
    // SAFETY: by the condition of this function.
    unsafe { side_by_side::<B, J, LANES, AVX2>(&mut values, row, len) };
    // The joints must not be seen from the loop: the compiler would make its vectors as narrow.
    black_box(&mut values);
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            values[lane] = J::join(values[lane], values[lane + width]);
        }
        width /= 2;
    }
    values[0]
}

/// `LANES` values side by side, of every `LANES`th element each.
///
/// # Safety
///
/// The row has `len` elements, at least one.
#[inline(always)]
unsafe fn side_by_side<
    B: Body<C = ()>,
    J: Joint<Value = B::Out>,
    const LANES: usize,
    const AVX2: bool,
>(
    to: &mut [B::Out; LANES],
    row: &Row<B>,
    len: usize,
) {
    let (own_a, own_b);
    let Row { mut a, mut b, steps } = *row;
    // SAFETY: there is a first element. What repeats does so in memory as well, so that one loop
    // serves all.
    unsafe {
        if steps[0] == 0 {
            own_a = [a.read(); LANES];
            a = own_a.as_ptr();
        }
        if steps[1] == 0 {
            own_b = [b.read(); LANES];
            b = own_b.as_ptr();
        }
    }
    let mut values = [J::NEUTRAL; LANES];
    for _ in 0..len / LANES {
        // SAFETY: as many elements are left, or repeated.
        let (x, y) = unsafe { (&*a.cast::<[B::A; LANES]>(), &*b.cast::<[B::B; LANES]>()) };
        for lane in 0..LANES {
            values[lane] = J::join(values[lane], B::at::<AVX2>(x[lane], y[lane], ()));
        }
        a = a.wrapping_add(LANES * steps[0]);
        b = b.wrapping_add(LANES * steps[1]);
    }
    *to = values;
    for (lane, value) in to.iter_mut().enumerate().take(len % LANES) {
        // SAFETY: as many elements are left, or repeated.
        let made = unsafe { B::at::<AVX2>(a.add(lane).read(), b.add(lane).read(), ()) };
        *value = J::join(*value, made);
    }
}
