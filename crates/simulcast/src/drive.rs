//! Driving: a nest, a body and pointers become runs.
//!
//! ```text
//! rows     the output and every operand are contiguous or repeat along the innermost loop, and it
//!          is long: run after run, straight on the arrays
//! tiles    some operand is neither, or the innermost loop is short: a stretch of the output, over
//!          as many loops as it takes, with the awkward operands packed beside it; a packed
//!          operand that has not moved since the last tile is not packed again
//! squares  an operand runs along another loop than the output (it is transposed): tiles over both
//!          loops, so that every line that is fetched is used
//! strided  elements that must not be copied, or an output with gaps: one element at a time
//! ```
//!
//! Large outputs go through a tile and out with streaming stores. One call picks the way and the
//! instruction-set level for the whole nest.
//!
//! Invariant: `out` and `ins` of a [`Job`] reach every element of its nest, as [`crate::kernel`]
//! asks; each output element is written exactly once.

use std::mem::{MaybeUninit, needs_drop};

use crate::inline::{INLINE, Inline};
use crate::kernel::Body;
use crate::level::{Kind, Level, compiled_for_levels};
use crate::line::Line;
use crate::nest::{Loop, Nest};
use crate::pack::{pack, square};
use crate::stream::{self, Ahead, prefetch};

/// An innermost loop shorter than this is joined with the loops around it.
const SHORT: usize = 128;

/// The bytes of one operand's part of a tile: with those of the others and the results it stays in
/// the first-level cache.
const STRETCH: usize = 4096;

/// The bytes of an operand that is packed for many tiles at once: the second-level cache has room for
/// several.
const BLOCK: usize = 32768;

/// The bytes of one operand's square: they stay in the second-level cache.
const SQUARE: usize = 65536;

/// The bytes of a column of a square, at best. Eight lines in a row are what memory likes.
const COLUMN: usize = 512;

/// Squares go down after this many columns, so that the pages of a transposed operand stay known.
const ACROSS: usize = 1024;

/// What there is to do: where the nest begins.
pub(crate) struct Job<'n, R, const N: usize> {
    pub(crate) nest: &'n Nest<N>,
    pub(crate) out: *mut R,
    pub(crate) ins: [*const u8; N],
    /// Whether results go past the caches.
    pub(crate) stream: bool,
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
    let _fence = job.stream.then(|| stream::Fence);
    // SAFETY: the caller keeps the invariant; a `Level` exists only where the machine has it.
    unsafe {
        match (way, level.kind()) {
            (Way::Rows, Kind::Baseline) => rows(body, job),
            (Way::Tiles(from), Kind::Baseline) => tiles::<B, N, false>(body, job, from),
            (Way::Squares(with), Kind::Baseline) => squares::<B, N, false>(body, job, with),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx2) => rows_avx2(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx2) => tiles_avx2(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx2) => squares_avx2(body, job, with),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx512) if B::OWN_LEVELS => rows_avx2(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Rows, Kind::Avx512) => rows_avx512(body, job),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx512) if B::OWN_LEVELS => tiles_avx2(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Tiles(from), Kind::Avx512) => tiles_avx512(body, job, from),
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx512) if B::OWN_LEVELS => squares_avx2(body, job, with),
            #[cfg(target_arch = "x86_64")]
            (Way::Squares(with), Kind::Avx512) => squares_avx512(body, job, with),
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
            if let Some((_, at)) = nearest {
                return Way::Squares(at);
            }
        }
    }
    let mut from = last;
    let mut len = inner.len;
    while len < SHORT && from > 0 && loops.len() - from < INLINE {
        let whole = len.cast_signed() * unit;
        if outer[from - 1].out != whole || !tileable(body, loops, from - 1) {
            break;
        }
        from -= 1;
        len *= outer[from].len;
    }
    let splat = (0..N).any(|operand| inner.ins[operand] == 0);
    let straight = !(0..N).any(awkward) && (B::PATTERNS || !splat);
    if straight && !job.stream && from == last { Way::Rows } else { Way::Tiles(from) }
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
    ) {
        // SAFETY: the caller keeps the conditions.
        unsafe { squares::<B, N, true>(body, job, with) }
    }
}

/// Pointers to an element of the output and of every operand.
struct At<R, const N: usize> {
    out: *mut R,
    ins: [*const u8; N],
}

impl<R, const N: usize> At<R, N> {
    /// Where a job's nest begins.
    #[inline(always)]
    fn start(job: &Job<'_, R, N>, sizes: [usize; N]) -> Self {
        let mut at = Self { out: job.out.wrapping_offset(job.nest.out), ins: job.ins };
        for (operand, size) in sizes.into_iter().enumerate() {
            let bytes = job.nest.ins[operand] * size.cast_signed();
            at.ins[operand] = at.ins[operand].wrapping_offset(bytes);
        }
        at
    }

    /// `steps` steps of a loop further.
    #[inline(always)]
    fn moved(&self, one: &Loop<N>, steps: isize, sizes: [usize; N]) -> Self {
        let mut at = Self { out: self.out.wrapping_offset(one.out * steps), ins: self.ins };
        for (operand, size) in sizes.into_iter().enumerate() {
            let bytes = one.ins[operand] * steps * size.cast_signed();
            at.ins[operand] = at.ins[operand].wrapping_offset(bytes);
        }
        at
    }
}

/// A walk over every combination of some loops, in order.
///
/// Not a function that takes a closure: a closure that is large is not inlined, and what is not
/// inlined is not compiled for the level.
struct Walk<'l, R, const N: usize> {
    loops: &'l [Loop<N>],
    index: Inline<usize>,
    at: At<R, N>,
}

impl<'l, R, const N: usize> Walk<'l, R, N> {
    /// At the start.
    #[inline(always)]
    fn new(loops: &'l [Loop<N>], at: At<R, N>) -> Self {
        Self { loops, index: Inline::of_len(loops.len()), at }
    }

    /// One step on; says whether there was one.
    #[inline(always)]
    fn step(&mut self, sizes: [usize; N]) -> bool {
        for (one, index) in self.loops.iter().zip(&mut *self.index).rev() {
            *index += 1;
            if *index < one.len {
                self.at = self.at.moved(one, 1, sizes);
                return true;
            }
            self.at = self.at.moved(one, 1 - one.len.cast_signed(), sizes);
            *index = 0;
        }
        false
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
    let mut walk = Walk::new(outer, At::start(job, sizes));
    loop {
        // SAFETY: the nest stays within the arrays; `choose` saw strides of 0 and 1 alone.
        unsafe { body.dense(walk.at.out, walk.at.ins, splat, inner.len) };
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

/// Room for a tile.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Room([MaybeUninit<u8>; STRETCH]);

/// How many steps of some bytes make whole lines.
struct WholeLines {
    bytes: usize,
    steps: usize,
}

impl WholeLines {
    #[inline(always)]
    fn new(bytes: usize) -> Self {
        // A line is a power of two: what divides both is their lowest bit, or the line.
        let common = 1 << bytes.trailing_zeros().min(stream::LINE.trailing_zeros());
        Self { bytes, steps: stream::LINE / common }
    }

    /// At most `steps` steps that make whole lines, where there are enough.
    #[inline(always)]
    fn fit(&self, steps: usize) -> usize {
        if steps < self.steps { steps } else { steps / self.steps * self.steps }
    }

    /// At most `steps` steps from that address on that end at a line, where any do.
    #[inline(always)]
    fn first(&self, address: usize, steps: usize) -> usize {
        let ends = |&count: &usize| (address + count * self.bytes).is_multiple_of(stream::LINE);
        (1..=steps).rev().take(self.steps).find(ends).unwrap_or(steps)
    }
}

/// Stretches of the output, with the awkward operands packed beside them.
///
/// # Safety
///
/// The invariant of this module, [`choose`] chose tiles, and with `WIDE` the caller is compiled for
/// AVX.
#[inline(always)]
unsafe fn tiles<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    job: &Job<'_, B::Out, N>,
    from: usize,
) {
    let (sizes, unit) = (body.sizes(), body.unit());
    let size = size_of::<B::Out>() * unit;
    let loops = &job.nest.loops[..];
    let (outer, group) = loops.split_at(from);
    let Some((first, inside)) = group.split_first() else { return };
    let inner: usize = inside.iter().map(|one| one.len).product();

    let mut lies = [Lie::Direct; N];
    let mut splat = 0;
    let mut widest = 1;
    for operand in 0..N {
        lies[operand] = lie(loops, from, operand, unit.cast_signed());
        if lies[operand] == Lie::Splat && B::PATTERNS {
            splat |= 1 << operand;
            continue;
        }
        if lies[operand] != Lie::Direct {
            lies[operand] = Lie::Packed;
            widest = widest.max(sizes[operand]);
        }
    }
    // How many steps of the first loop make a tile; without packing, all of them.
    let buffered = lies.contains(&Lie::Packed);
    let steps = if buffered { (STRETCH / widest / inner).max(1) } else { first.len };
    let mut ahead = None;
    if job.stream {
        let moving = (0..N).filter(|&n| lies[n] != Lie::Splat);
        let far = |&n: &usize| lies[n] == Lie::Direct && outer.iter().all(|one| one.ins[n] != 0);
        let mut from_memory = moving.clone().filter(far);
        if let (Some(operand), None) = (from_memory.next(), from_memory.next())
            && moving.count() > 2
        {
            ahead = Some(Ahead { operand });
        }
    }
    let whole = WholeLines::new(inner * size);
    let steps = if job.stream { whole.fit(steps) } else { steps };
    // An operand that the loop around repeats is packed for a whole round of the group, once, where a
    // near cache has room for that.
    let mut blocks: [Vec<Line>; N] = std::array::from_fn(|n| {
        let bytes = first.len.saturating_mul(inner * sizes[n]);
        let again = outer.last().is_some_and(|one| one.ins[n] == 0);
        let whole = lies[n] == Lie::Packed && again && first.len > steps && bytes <= BLOCK;
        Vec::with_capacity(if whole { bytes.div_ceil(size_of::<Line>()) } else { 0 })
    });
    let mut rooms = [Room([MaybeUninit::uninit(); STRETCH]); N];
    // What each room holds: the operand's pointer, and for how many steps.
    let mut held = [(std::ptr::null::<u8>(), 0_usize); N];
    // The loops of an operand that is packed.
    let mut packing = [[(1_usize, 0_isize); INLINE]; N];
    for (n, packing) in packing.iter_mut().enumerate() {
        for (place, one) in packing.iter_mut().zip(group) {
            *place = (one.len, one.ins[n]);
        }
    }
    let depth = group.len();

    let mut walk = Walk::new(outer, At::start(job, sizes));
    loop {
        let mut done = 0;
        while done < first.len {
            let at = walk.at.moved(first, done.cast_signed(), sizes);
            let mut count = steps.min(first.len - done);
            if job.stream && done == 0 {
                // End the first tile at a line, so that all others are whole lines.
                count = count.min(whole.first(at.out.addr(), steps));
            }
            let mut ins = at.ins;
            for operand in 0..N {
                if lies[operand] != Lie::Packed {
                    continue;
                }
                let (room, pointer, own, skip) = if blocks[operand].capacity() == 0 {
                    (rooms[operand].0.as_mut_ptr().cast::<u8>(), ins[operand], count, 0)
                } else {
                    let room = blocks[operand].as_mut_ptr().cast::<u8>();
                    (room, walk.at.ins[operand], first.len, done * inner * sizes[operand])
                };
                let (before, have) = held[operand];
                if before != pointer || have < own {
                    packing[operand][0].0 = own;
                    // SAFETY: `own * inner` elements, `count` of them of at most `widest` bytes,
                    // fit in the room, the nest stays within the operand, and `tileable` saw that
                    // it is plain.
                    unsafe { pack(sizes[operand], room, pointer, &packing[operand][..depth]) };
                    held[operand] = (pointer, own);
                }
                ins[operand] = room.wrapping_add(skip);
            }
            let len = count * inner;
            // SAFETY: the output is contiguous along the group; operands are contiguous in their
            // rooms or arrays, or repeat. Results that are streamed are plain.
            unsafe {
                if job.stream {
                    body.streamed::<WIDE>(at.out, ins, splat, len, ahead);
                } else {
                    body.dense(at.out, ins, splat, len);
                }
            }
            done += count;
        }
        if !walk.step(sizes) {
            return;
        }
    }
}

/// Tiles over two loops, for operands that run along the other one.
///
/// # Safety
///
/// The invariant of this module, [`choose`] chose squares, and with `WIDE` the caller is compiled
/// for AVX.
#[inline(always)]
unsafe fn squares<B: Body<N>, const N: usize, const WIDE: bool>(
    body: &mut B,
    job: &Job<'_, B::Out, N>,
    with: usize,
) {
    let sizes = body.sizes();
    let size = size_of::<B::Out>() * body.unit();
    let Some((inner, rest)) = job.nest.loops.split_last() else { return };
    let mut outer = Inline::new();
    rest.iter().enumerate().filter(|&(at, _)| at != with).for_each(|(_, one)| outer.push(*one));
    let side = rest[with];

    let (mut splat, mut packed) = (0, [false; N]);
    let mut widest = if job.stream { size } else { 1 }.max(1);
    for operand in 0..N {
        match inner.ins[operand] {
            1 => {}
            0 if B::PATTERNS => splat |= 1 << operand,
            _ => {
                packed[operand] = true;
                widest = widest.max(sizes[operand]);
            }
        }
    }
    let rows = (COLUMN / widest).clamp(16, 128);
    let columns = SQUARE / widest / rows;

    // Rows that are a line longer than they need be: those of a power of two would all fall on a few
    // sets of the cache.
    let pitches = sizes.map(|own| columns.min(inner.len) + stream::LINE / own.max(1));
    let mut rooms: [Vec<Line>; N] = std::array::from_fn(|n| {
        let bytes = if packed[n] { rows.min(side.len) * pitches[n] * sizes[n] } else { 0 };
        Vec::with_capacity(bytes.div_ceil(size_of::<Line>()))
    });
    // Whole squares across, and as many rows as there are.
    let across = (ACROSS / columns).max(1) * columns;
    let start = At::start(job, sizes);
    // As if the output began at a line, so that blocks end at lines too.
    let before = if job.stream { start.out.addr() % stream::LINE / size.max(1) } else { 0 };
    let blocks = Loop { len: (inner.len + before).div_ceil(across), ..Loop::default() };
    let mut first = 0;
    outer.push(blocks);
    let mut walk = Walk::new(&outer, start);
    loop {
        let end = if first == 0 { across - before } else { first + across }.min(inner.len);
        // End the first rows at a line of the transposed operand, so that all others read whole lines.
        let over = (0..N).filter(|&n| packed[n]).find_map(|n| {
            let in_line = walk.at.ins[n].addr() % stream::LINE / sizes[n].max(1);
            match side.ins[n] {
                1 => Some(in_line),
                -1 => Some((stream::LINE / sizes[n].max(1)).saturating_sub(in_line + 1)),
                _ => None,
            }
        });
        let over = over.map_or(0, |over| over.min(rows - 1));
        let mut row = 0;
        while row < side.len {
            let most = if row == 0 { rows - over } else { rows };
            let high = most.min(side.len - row);
            let line = walk.at.moved(&side, row.cast_signed(), sizes);
            let mut column = first;
            while column < end {
                let at = line.moved(inner, column.cast_signed(), sizes);
                let mut wide = columns.min(end - column);
                if job.stream && column == first {
                    let over = at.out.addr() % stream::LINE / size.max(1);
                    wide = wide.min(columns.saturating_sub(over).max(1));
                }
                for operand in (0..N).filter(|&operand| packed[operand]) {
                    let down = (high, side.ins[operand]);
                    let across = (wide, inner.ins[operand]);
                    // SAFETY: `high` rows of `wide` elements fit in the room, the nest stays within
                    // the operand, and `tileable` saw that it is plain.
                    unsafe {
                        let (room, pitch) = (rooms[operand].as_mut_ptr().cast(), pitches[operand]);
                        square::<WIDE>(sizes[operand], room, pitch, at.ins[operand], down, across);
                    }
                }
                // Columns of a transposed operand are far apart, and no hardware guesses them: ask
                // for those of the next square while this one is written.
                let next = if column + wide < end {
                    at.moved(inner, wide.cast_signed(), sizes)
                } else {
                    let line = walk.at.moved(&side, (row + high).cast_signed(), sizes);
                    line.moved(inner, first.cast_signed(), sizes)
                };
                for r in 0..high {
                    let mut at = at.moved(&side, r.cast_signed(), sizes);
                    for operand in (0..N).filter(|&operand| packed[operand]) {
                        let (own, room) = (sizes[operand].cast_signed(), rooms[operand].as_ptr());
                        let bytes = r * pitches[operand] * sizes[operand];
                        at.ins[operand] = room.cast::<u8>().wrapping_add(bytes);
                        if side.ins[operand].unsigned_abs() != 1 {
                            continue;
                        }
                        for c in r * wide / high..(r + 1) * wide / high {
                            let column = c.cast_signed() * inner.ins[operand] * own;
                            let from = next.ins[operand].wrapping_offset(column);
                            for line in (0..high * sizes[operand]).step_by(stream::LINE) {
                                let down = line.cast_signed() * side.ins[operand];
                                prefetch(from.wrapping_offset(down));
                            }
                        }
                    }
                    // SAFETY: a row of `wide` elements, in the rooms or in the arrays; the results
                    // of one row fit in their room.
                    unsafe {
                        if job.stream {
                            body.streamed::<WIDE>(at.out, at.ins, splat, wide, None);
                        } else {
                            body.dense(at.out, at.ins, splat, wide);
                        }
                    }
                }
                column += wide;
            }
            row += high;
        }
        first = if end == inner.len { 0 } else { end };
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

    use super::WholeLines;
    use crate::{copy_to, sum_to_shape, zip};

    #[test]
    fn tiles_end_at_lines_where_they_can() {
        // Three floats a step: sixteen steps are three lines.
        let rgb = WholeLines::new(12);
        assert_eq!((rgb.fit(170), rgb.fit(10)), (160, 10));
        assert_eq!((rgb.first(0, 160), rgb.first(16, 160), rgb.first(2, 160)), (160, 148, 160));
        let floats = WholeLines::new(4);
        assert_eq!((floats.fit(512), floats.first(16, 512), floats.first(60, 3)), (512, 508, 1));
    }

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
