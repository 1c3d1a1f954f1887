//! Tiles: stretches of the output, with the awkward operands packed beside them.

use std::mem::MaybeUninit;

use super::{Job, Lie, lie};
use crate::exec::drive::cursor::{At, Walk};
use crate::exec::inner_loop::Body;
use crate::layout::loop_nest::Loop;
use crate::layout::small_vec::INLINE;
use simulcast_kernels::cpu::aligned_buf::Line;
use simulcast_kernels::cpu::nontemporal::{self, Far};
use simulcast_kernels::pack::pack;

/// The bytes of one operand's part of a tile: with those of the others and the results it stays in
/// the first-level cache.
pub(super) const STRETCH: usize = 4096;

/// The bytes of one where tiles go backwards: the sooner they are written, the less memory waits.
const BACK: usize = 1024;

/// The bytes of an operand that is packed for many tiles at once: the second-level cache has room for
/// several.
const BLOCK: usize = 32768;

/// The bytes of a row that needs no packing, where results stay in a cache, and what is packed would change
/// from tile to tile: reading it back is what those results would wait for.
const ROW: usize = 256;

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
        let common = 1 << bytes.trailing_zeros().min(nontemporal::LINE.trailing_zeros());
        Self { bytes, steps: nontemporal::LINE / common }
    }

    /// At most `steps` steps that make whole lines, where there are enough.
    #[inline(always)]
    fn fit(&self, steps: usize) -> usize {
        if steps < self.steps { steps } else { steps / self.steps * self.steps }
    }

    /// At most `steps` steps from that address on that end at a line, where any do.
    #[inline(always)]
    fn first(&self, address: usize, steps: usize) -> usize {
        let ends =
            |&count: &usize| (address + count * self.bytes).is_multiple_of(nontemporal::LINE);
        (1..=steps).rev().take(self.steps).find(ends).unwrap_or(steps)
    }
}

/// Whether no loop around repeats an operand.
#[inline(always)]
fn from_memory<const N: usize>(outer: &[Loop<N>], operand: usize) -> bool {
    outer.iter().all(|one| one.ins[operand] != 0)
}

/// The operands that come from memory.
#[inline(always)]
fn far<const N: usize>(lies: &[Lie; N], outer: &[Loop<N>]) -> Far {
    let moving = lies.iter().filter(|&&lie| lie != Lie::Splat).count();
    let far = |&n: &usize| lies[n] == Lie::Direct && from_memory(outer, n);
    Far { operands: (0..N).filter(far).fold(0, |all, n| all | 1 << n), beside: moving > 2 }
}

/// Stretches of the output, with the awkward operands packed beside them.
///
/// # Safety
///
/// The invariant of [`super`], and [`super::choose`] chose tiles, and with `WIDE` the caller is compiled for
/// AVX.
#[inline(always)]
pub(super) unsafe fn tiles<B: Body<N>, const N: usize, const WIDE: bool>(
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
    // Tiles go the way in which an operand that runs backwards lies in memory, unless another one
    // would then be read backwards.
    let moves = |n: usize, lie: Lie, back: bool| {
        lies[n] == lie && from_memory(outer, n) && (first.ins[n] < 0) == back
    };
    let back = job.any_order
        && (0..N).any(|n| moves(n, Lie::Packed, true))
        && !(0..N).any(|n| moves(n, Lie::Direct, false) || moves(n, Lie::Packed, false));
    // How many steps of the first loop make a tile; without packing, all of them.
    let buffered = lies.contains(&Lie::Packed);
    let room = if back { BACK } else { STRETCH };
    let steps = if buffered { (room / widest / inner).max(1) } else { first.len };
    // Where only some are streamed, a tile is no longer than the stretch that goes one way.
    let mixed = job.stream.any() && !job.stream.all();
    let steps = if mixed {
        steps.min((nontemporal::STRETCH / (inner * size).max(1)).max(1))
    } else {
        steps
    };
    let far = if job.stream.any() && !back { far(&lies, outer) } else { Far::NONE };
    let whole = WholeLines::new(inner * size);
    let steps = if job.stream.any() { whole.fit(steps) } else { steps };
    // Whether rows do without packing: along them, all operands are contiguous or repeat.
    let along = |n: usize, stride| matches!(inside, [row] if row.ins[n] == stride);
    let row_splat = (0..N).fold(0, |mask, n| mask | usize::from(along(n, 0)) << n);
    let by_rows = inner * size >= ROW
        && body.takes_rows()
        && (0..N).all(|n| along(n, 1) || B::PATTERNS && along(n, 0))
        && (0..N).any(|n| lies[n] == Lie::Packed && first.ins[n] != 0);
    // An operand that the loop around repeats is packed for a whole round of the group, once, where a
    // near cache has room for that.
    let mut blocks: [Vec<Line>; N] = std::array::from_fn(|n| {
        let bytes = first.len.saturating_mul(inner * sizes[n]);
        let again = outer.last().is_some_and(|one| one.ins[n] == 0);
        // Nothing is, where all of the rows do without.
        let packs = lies[n] == Lie::Packed && (job.stream.any() || !by_rows);
        let whole = packs && again && first.len > steps && bytes <= BLOCK;
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
    // Where rows are whole lines that begin within one, so would every tile. But if what is packed is the same in every row,
    // tiles may begin within rows as well.
    let periodic = job.stream.all()
        && !back
        && whole.steps == 1
        && (0..N).all(|n| lies[n] != Lie::Packed || first.ins[n] == 0);
    let in_line = |at: &At<B::Out, N>| {
        let bytes = at.out.addr().wrapping_neg() % nontemporal::LINE;
        if periodic && steps > 1 && first.len > steps && bytes.is_multiple_of(size) {
            bytes / size
        } else {
            0
        }
    };

    let mut walk = Walk::new(outer, At::start(job, sizes));
    loop {
        // End the first tile at a line, so that all others are whole lines.
        let head = if job.stream.any() { whole.first(walk.at.out.addr(), steps) } else { steps };
        let head = head.min(first.len);
        // The results that the first tile has more than others, of which it needs one row more then.
        let phase = in_line(&walk.at);
        let (head, steps) = if phase > 0 { (steps - 1, steps - 1) } else { (head, steps) };
        // Most rows are one tile, and a division takes as long as a short one of them.
        let tiles = if head == first.len { 1 } else { 1 + (first.len - head).div_ceil(steps) };
        for tile in 0..tiles {
            let tile = if back { tiles - 1 - tile } else { tile };
            let done = if tile == 0 { 0 } else { head + (tile - 1) * steps };
            let count = (head + tile * steps).min(first.len) - done;
            let mut at = walk.at.moved(first, done.cast_signed(), sizes);
            let before = if tile == 0 { 0 } else { phase };
            let after = if tile + 1 == tiles { 0 } else { phase };
            at.out = at.out.wrapping_add(before * unit);
            let past = job.stream.at(at.out);
            if by_rows && !past {
                let rows = Loop { len: count, ..*first };
                // SAFETY: the nest stays within the arrays; their strides were compared above.
                unsafe { body.rows(at.out, at.ins, row_splat, inner, &rows) };
                continue;
            }
            let mut ins = at.ins;
            for operand in 0..N {
                if lies[operand] == Lie::Direct {
                    ins[operand] = ins[operand].wrapping_add(before * sizes[operand]);
                }
                if lies[operand] != Lie::Packed {
                    continue;
                }
                let count = count + usize::from(after > 0);
                let (room, pointer, own, skip) = if blocks[operand].capacity() == 0 {
                    (rooms[operand].0.as_mut_ptr().cast::<u8>(), ins[operand], count, 0)
                } else {
                    let room = blocks[operand].as_mut_ptr().cast::<u8>();
                    (room, walk.at.ins[operand], first.len, done * inner * sizes[operand])
                };
                // Runs that are turned over, the hardware takes for many short ones.
                if back && first.ins[operand] == -1 {
                    let bytes = own * sizes[operand];
                    nontemporal::ask_ahead(pointer.wrapping_sub(bytes), bytes);
                }
                let (was, have) = held[operand];
                if was != pointer || have < own {
                    packing[operand][0].0 = own;
                    // SAFETY: `own * inner` elements, `count` of them of at most `widest` bytes,
                    // fit in the room, the nest stays within the operand, and `tileable` saw that
                    // it is plain.
                    unsafe {
                        pack::<WIDE>(sizes[operand], room, pointer, &packing[operand][..depth]);
                    }
                    held[operand] = (pointer, own);
                }
                ins[operand] = room.wrapping_add(skip + before * sizes[operand]);
            }
            let len = count * inner + after - before;
            // SAFETY: the output is contiguous along the group; operands are contiguous in their
            // rooms or arrays, or repeat. Results that are streamed are plain.
            unsafe {
                if past {
                    body.streamed::<WIDE>(at.out, ins, splat, len, far);
                } else {
                    body.dense(at.out, ins, splat, len);
                }
            }
        }
        if !walk.step(sizes) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WholeLines;

    #[test]
    fn tiles_end_at_lines_where_they_can() {
        // Three floats a step: sixteen steps are three lines.
        let rgb = WholeLines::new(12);
        assert_eq!((rgb.fit(170), rgb.fit(10)), (160, 10));
        assert_eq!((rgb.first(0, 160), rgb.first(16, 160), rgb.first(2, 160)), (160, 148, 160));
        let floats = WholeLines::new(4);
        assert_eq!((floats.fit(512), floats.first(16, 512), floats.first(60, 3)), (512, 508, 1));
    }
}
