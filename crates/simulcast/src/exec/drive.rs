//! Driving: a nest, a body and pointers become runs.
//!
//! ```text
//! rows     the output and every operand are contiguous or repeat along the innermost loop, and it
//!          is long: run after run, straight on the arrays
//! tiles    some operand is neither, or the innermost loop is short: a stretch of the output, over
//!          as many loops as it takes, with the awkward operands packed beside it; a packed
//!          operand that has not moved since the last tile is not packed again
//! squares  an operand runs along another loop than the output (it is transposed): tiles over both
//!          loops, so that every line that is fetched is used; where rows are short, plain tiles do that
//! strided  elements that must not be copied, or an output with gaps: one element at a time
//! ```
//!
//! Results of large outputs go past the caches ([`simulcast_kernels::cpu::nontemporal`]). One call picks the way and the
//! instruction-set level for the whole nest.
//!
//! Invariant: `out` and `ins` of a [`Job`] reach every element of its nest, as [`crate::exec::inner_loop`]
//! asks; each output element is written exactly once.

mod blocked;
mod cursor;
mod tiled;

use std::mem::needs_drop;

pub(crate) use blocked::BAND;
use blocked::squares;
use cursor::{At, Walk};
use tiled::{STRETCH, tiles};

use crate::exec::inner_loop::Body;
use crate::layout::loop_nest::{Loop, Nest};
use crate::layout::small_vec::INLINE;
use simulcast_kernels::compiled_for_levels;
use simulcast_kernels::cpu::level::{Kind, Level};
use simulcast_kernels::cpu::nontemporal::{self, Streams};

/// An innermost loop shorter than this is joined with the loops around it.
const SHORT: usize = 128;

/// What there is to do: where the nest begins.
pub(crate) struct Job<'n, R, const N: usize> {
    pub(crate) nest: &'n Nest<N>,
    pub(crate) out: *mut R,
    pub(crate) ins: [*const u8; N],
    /// Which results go past the caches.
    pub(crate) stream: Streams,
    /// Whether elements may be visited in another order than that of the output's memory.
    pub(crate) any_order: bool,
}

/// The way, once the strides are known.
enum Way {
    Rows,
    /// Tiles over the loops from that one on.
    Tiles(usize),
    /// Squares over that loop and the innermost.
    Squares(usize),
    Strided,
}

/// Runs a body over a nest.
///
/// # Safety
///
/// The invariant of this module.
#[inline]
pub(crate) unsafe fn drive<B: Body<N>, const N: usize>(
    level: Level,
    body: &mut B,
    job: &Job<'_, B::Out, N>,
) {
    let way = choose(body, job);
    let _fence = job.stream.any().then(|| nontemporal::Fence);
    // SAFETY: the caller keeps the invariant; a `Level` exists only where the machine has it.
    unsafe {
        match (way, level.kind()) {
            (Way::Rows, Kind::Baseline) => rows(body, job),
            (Way::Tiles(from), Kind::Baseline) => tiles::<B, N, false>(body, job, from),
            (Way::Squares(with), Kind::Baseline) => squares::<B, N, false>(body, job, with, level),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx2) => rows_avx2(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx2) => tiles_avx2(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx2) => squares_avx2(body, job, with, level),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx512) if B::OWN_LEVELS => rows_avx2(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx512) => rows_avx512(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx512) if B::OWN_LEVELS => tiles_avx2(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx512) => tiles_avx512(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx512) if B::OWN_LEVELS => {
                squares_avx2(body, job, with, level);
            }
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx512) => squares_avx512(body, job, with, level),
            (Way::Strided, _) => strided(body, job),
        }
    }
}

/// How an operand lies along the loops from `from` on, where the output is contiguous.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// As the output.
    Direct,
    /// One element.
    Splat,
    /// Otherwise.
    Packed,
}

#[inline(always)]
fn lie<const N: usize>(loops: &[Loop<N>], from: usize, operand: usize, unit: isize) -> Lie {
    let part = || loops.iter().skip(from);
    if part().all(|one| one.ins[operand] == 0) {
        Lie::Splat
    } else if part().all(|one| one.ins[operand] * unit == one.out) {
        Lie::Direct
    } else {
        Lie::Packed
    }
}

/// Whether tiles can stretch over the loops from `from` on.
#[inline(always)]
fn tileable<B: Body<N>, const N: usize>(body: &B, loops: &[Loop<N>], from: usize) -> bool {
    let (plain, unit) = (body.plain(), body.unit().cast_signed());
    (0..N).all(|operand| match lie(loops, from, operand, unit) {
        Lie::Direct => true,
        Lie::Splat => B::PATTERNS || plain[operand],
        Lie::Packed => plain[operand],
    })
}

#[inline(always)]
fn choose<B: Body<N>, const N: usize>(body: &B, job: &Job<'_, B::Out, N>) -> Way {
    let unit = body.unit().cast_signed();
    let loops = &job.nest.loops[..];
    let Some((inner, outer)) = loops.split_last() else { return Way::Strided };
    let last = outer.len();
    if inner.out != unit || !tileable(body, loops, last) {
        return Way::Strided;
    }
    let awkward = |operand: usize| !matches!(inner.ins[operand], 0 | 1);
    if job.any_order && inner.len >= 8 {
        for operand in (0..N).filter(|&operand| awkward(operand)) {
            let step = inner.ins[operand].unsigned_abs();
            let nearer = |one: &Loop<N>| {
                let own = one.ins[operand].unsigned_abs();
                (own != 0 && own < step && one.len >= 8).then_some(own)
            };
            let nearest = (0..last).filter_map(|at| Some((nearer(&outer[at])?, at))).min();
            // Short rows that follow each other are one run once they are packed. What comes from memory comes in
            // lines, of which a tile should use two of every column.
            let few = if job.stream.any() { STRETCH / (2 * nontemporal::LINE) } else { SHORT - 1 };
            let whole = inner.len.cast_signed() * unit;
            let joined = |at: usize| at + 1 == last && inner.len <= few && outer[at].out == whole;
            if let Some((_, at)) = nearest.filter(|&(_, at)| !joined(at)) {
                return Way::Squares(at);
            }
        }
    }
    // Rows that are streamed begin and end at lines, which takes longer than a few of those do.
    let size = body.sizes().into_iter().fold(size_of::<B::Out>() * body.unit(), usize::max);
    let short = if job.stream.any() { SHORT.max(STRETCH / 2 / size.max(1)) } else { SHORT };
    let mut from = last;
    let mut len = inner.len;
    while len < short && from > 0 && loops.len() - from < INLINE {
        let whole = len.cast_signed() * unit;
        if outer[from - 1].out != whole || !tileable(body, loops, from - 1) {
            break;
        }
        from -= 1;
        len *= outer[from].len;
    }
    let splat = (0..N).any(|operand| inner.ins[operand] == 0);
    let straight = !(0..N).any(awkward) && (B::PATTERNS || !splat);
    if straight && !job.stream.any() && from == last { Way::Rows } else { Way::Tiles(from) }
}

compiled_for_levels! {
    /// [`rows`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn rows_avx2, rows_avx512<B: Body<N>, const N: usize>(
        body: &mut B,
        job: &Job<'_, B::Out, N>,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { rows(body, job) }
    }
}

compiled_for_levels! {
    /// [`tiles`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn tiles_avx2, tiles_avx512<B: Body<N>, const N: usize>(
        body: &mut B,
        job: &Job<'_, B::Out, N>,
        from: usize,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { tiles::<B, N, true>(body, job, from) }
    }
}

compiled_for_levels! {
    /// [`squares`], compiled for a level.
    ///
    /// # Safety
    ///
    /// As there, and the machine has the features.
    unsafe fn squares_avx2, squares_avx512<B: Body<N>, const N: usize>(
        body: &mut B,
        job: &Job<'_, B::Out, N>,
        with: usize,
        level: Level,
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { squares::<B, N, true>(body, job, with, level) }
    }
}

/// Runs along the innermost loop.
///
/// # Safety
///
/// The invariant of this module, and [`choose`] chose rows.
#[inline(always)]
unsafe fn rows<B: Body<N>, const N: usize>(body: &mut B, job: &Job<'_, B::Out, N>) {
    let sizes = body.sizes();
    let Some((inner, outer)) = job.nest.loops.split_last() else { return };
    let splat = (0..N).fold(0, |mask, n| mask | usize::from(inner.ins[n] == 0) << n);
    let one = Loop::default();
    let (rows, outer) = outer.split_last().unwrap_or((&one, &[]));
    let mut walk = Walk::new(outer, At::start(job, sizes));
    loop {
        // SAFETY: the nest stays within the arrays; `choose` saw strides of 0 and 1 alone.
        unsafe { body.rows(walk.at.out, walk.at.ins, splat, inner.len, rows) };
        if !walk.step(sizes) {
            return;
        }
    }
}

/// One element at a time, with whatever strides.
///
/// # Safety
///
/// The invariant of this module.
#[inline(never)]
unsafe fn strided<B: Body<N>, const N: usize>(body: &mut B, job: &Job<'_, B::Out, N>) {
    let sizes = body.sizes();
    let one = Loop { len: 1, out: 1, ins: [1; N] };
    let (inner, outer) = match job.nest.loops.split_last() {
        Some((inner, outer)) => (inner, outer),
        None => (&one, &[][..]),
    };
    let mut walk = Walk::new(outer, At::start(job, sizes));
    loop {
        // SAFETY: the nest stays within the arrays.
        unsafe { body.strided(walk.at.out, inner.out, walk.at.ins, inner.ins, inner.len) };
        if !walk.step(sizes) {
            return;
        }
    }
}

/// Whether results of a type may take any way: through a tile, or out of order.
#[inline(always)]
pub(crate) fn movable<R>() -> bool {
    !needs_drop::<R>() && size_of::<R>() > 0 && size_of::<R>() <= STRETCH / SHORT
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use ndarray::{Array2, Array3, Axis, array, s};

    use crate::{copy_to, sum_to_shape, zip};

    // [E_BROADCAST_ANY_FUNC_3030]
    #[test]
    fn every_way_is_taken_on_little_data() {
        let a = Array2::from_shape_fn((9, 140), |(i, j)| (i * 140 + j) as u32);
        let (row, turned) = (a.row(3), a.t().to_owned());
        let naive =
            |f: &dyn Fn(usize, usize) -> u32| Array2::from_shape_fn((9, 140), |(i, j)| f(i, j));
        // Rows, then squares, then tiles of a short axis, then a backward operand.
        assert_eq!(zip((&a, row)).map(|a, b| a + b), naive(&|i, j| a[[i, j]] + a[[3, j]]));
        let expected = naive(&|i, j| a[[i, j]] + 2 * a[[i, j]]);
        assert_eq!(zip((&a, turned.t())).map(|a, b| a + 2 * b), expected);
        let rgb = Array3::from_shape_fn((5, 11, 3), |(i, j, k)| (i + j * k) as u32);
        let sums = zip((&rgb, &array![1, 2, 3])).map(|a, b| a + b);
        assert_eq!(sums[[4, 7, 2]], rgb[[4, 7, 2]] + 3);
        let back = zip((&a, a.slice(s![.., ..;-1]))).map(|a, b| a + b);
        assert_eq!(back, naive(&|i, j| a[[i, j]] + a[[i, 139 - j]]));
        // Rows of a few lines, one element of an operand for each.
        let (few, column) = (a.slice(s![.., ..70]), a.slice(s![.., 5..6]));
        let sums = zip((a.slice(s![3, ..70]), column)).map(|a, b| a + b);
        assert_eq!(sums, naive(&|i, j| a[[3, j]] + a[[i, 5]]).slice(s![.., ..70]));
        assert_eq!(zip((few, column)).map(|a, b| a + b)[[8, 69]], a[[8, 69]] + a[[8, 5]]);
        assert_eq!(copy_to(column, (9, 70)), naive(&|i, _| a[[i, 5]]).slice(s![.., ..70]));
        // Strided, into an output with gaps, with results that own memory.
        let mut out = Array2::from_elem((9, 280), Rc::new(0));
        zip((&a,)).map_into(&mut out.slice_mut(s![.., ..;2]), |&a| Rc::new(a));
        assert_eq!((*out[[2, 4]], *out[[2, 5]]), (a[[2, 2]], 0));
        let words = copy_to(&array!["x".to_owned(), "y".to_owned()], (3, 2));
        assert_eq!(words[[2, 1]], "y");
        let four = zip((&a, row, a.column(1).insert_axis(Axis(1)), turned.t()));
        assert_eq!(four.map(|a, b, c, d| a + b + c + d)[[8, 1]], 3 * a[[8, 1]] + a[[3, 1]]);
        assert_eq!(sum_to_shape(&a, (9, 1))[[1, 0]], a.row(1).sum());
        assert_eq!(sum_to_shape(&a, 140)[7], a.column(7).sum());
        assert_eq!(sum_to_shape(&a, 1)[0], a.sum());
    }

    // [E_BROADCAST_ANY_FUNC_3060]
    #[test]
    fn a_panic_on_little_data_drops_what_was_written() {
        let a = Array2::from_shape_fn((3, 4), |(i, j)| i * 4 + j);
        let alive = Rc::new(());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            zip((&a,)).map(|&n| {
                assert!(n < 7, "the fuse");
                Rc::clone(&alive)
            })
        }));
        assert!(outcome.is_err());
        assert_eq!(Rc::strong_count(&alive), 1);
    }
}
