//! The loops of an operation over a run of elements: one a body, whatever is repeated.
//!
//! ```text
//! stepped      element by element; an operand advances by 0 or 1
//! chunked      chunks of a constant number of elements, which the compiler vectorises; a repeated operand is read
//!              from a block that holds it once for each element of a chunk
//! tiled        tiles of whole vectors for long bodies; repeated operands and ragged ends are copied into a tile
//! nontemporal  as `chunked`, with non-temporal stores
//! ```
//!
//! The first and the last chunk of a run may overlap their neighbours: the elements in both are computed twice, to the
//! same bits, and no loop over single elements is needed.
//!
//! The invariant is that of [`super`].

use std::mem::MaybeUninit;
use std::ptr;

use super::{ElementOp, TILE};
#[cfg(target_arch = "x86_64")]
use crate::cpu::{nontemporal, prefetch};
#[cfg(target_arch = "x86_64")]
use crate::tuning::NONTEMPORAL_BLOCK_BYTES;
use crate::tuning::{CHUNK_ELEMENTS, CHUNK_END_ELEMENTS, VECTOR_BYTES};

/// Whether operand `number` is repeated.
#[inline(always)]
const fn is_repeated(repeated: usize, number: usize) -> bool {
    repeated >> number & 1 == 1
}

/// Element by element.
///
/// # Safety
///
/// The invariant of this module.
#[inline(never)]
pub(crate) unsafe fn stepped<O: ElementOp>(
    out: *mut u8,
    ins: &[*const u8; 3],
    repeated: usize,
    len: usize,
) {
    let out = out.cast::<O::Out>();
    let (a, b, c) = (ins[0].cast::<O::A>(), ins[1].cast::<O::B>(), ins[2].cast::<O::C>());
    // Not `map`: of an array it stays a call, in every instance.
    let step = |number: usize| usize::from(!is_repeated(repeated, number));
    let steps = [step(0), step(1), step(2)];
    for at in 0..len {
        // SAFETY: `at` is below the length of the result and of every operand that is not repeated; an operand beyond
        // the arity has no size.
        unsafe {
            let (x, y) = (a.add(at * steps[0]).read(), b.add(at * steps[1]).read());
            out.add(at).write(O::at::<false>(x, y, c.add(at * steps[2]).read()));
        }
    }
}

/// An operand of [`chunked`] and [`nontemporal`]: where its elements are, and what of an offset counts for it.
struct Operand<T> {
    from: *const T,
    /// All ones, or 0 for a repeated operand.
    mask: usize,
}

impl<T: Copy> Operand<T> {
    /// The operand at `from`, or `block` filled with it if it is repeated.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read, or `T` has no size.
    #[inline(always)]
    unsafe fn new(from: *const u8, is_repeated: bool, block: &mut [MaybeUninit<T>]) -> Self {
        if size_of::<T>() == 0 {
            return Self { from: ptr::NonNull::dangling().as_ptr(), mask: 0 };
        }
        let from = from.cast::<T>();
        if !is_repeated {
            return Self { from, mask: usize::MAX };
        }
        // SAFETY: the condition of this function.
        block.fill(MaybeUninit::new(unsafe { from.read() }));
        Self { from: block.as_ptr().cast(), mask: 0 }
    }

    /// The elements from `at` on.
    #[inline(always)]
    fn at(&self, at: usize) -> *const T {
        self.from.wrapping_add(at & self.mask)
    }
}

/// The operands that [`chunked`] and [`nontemporal`] read: those of the call, or, where the first one leaves but one of the
/// others to be read, that one in both places, so that memory brings no operand that is not chosen. `where3`, (4096, 4096)
/// f32, program-1, Zen 4, 2026-11-19: 0.95 of the speed of a loop that copies what is chosen; otherwise a third more is read.
struct Read<'i> {
    ins: &'i [*const u8; 3],
    repeated: usize,
}

impl<'i> Read<'i> {
    /// `both` is a place for other operands than those of the call.
    ///
    /// # Safety
    ///
    /// The invariant of this module; there is a result.
    #[inline(always)]
    unsafe fn new<O: ElementOp>(
        ins: &'i [*const u8; 3],
        repeated: usize,
        both: &'i mut [*const u8; 3],
    ) -> Self {
        if !is_repeated(repeated, 0) {
            return Self { ins, repeated };
        }
        // SAFETY: every operand has an element.
        let Some(only) = O::only(unsafe { ins[0].cast::<O::A>().read() }) else {
            return Self { ins, repeated };
        };
        *both = [ins[0], ins[only], ins[only]];
        Self { ins: both, repeated: if is_repeated(repeated, only) { 0b111 } else { 0b001 } }
    }
}

/// The operands of a run.
struct Operands<O: ElementOp> {
    a: Operand<O::A>,
    b: Operand<O::B>,
    c: Operand<O::C>,
}

impl<O: ElementOp> Operands<O> {
    /// The `count` results from `at` on.
    ///
    /// # Safety
    ///
    /// There is room for as many results at `to`, and every operand that is not a block has as many elements from `at` on.
    #[inline(always)]
    unsafe fn compute(&self, to: *mut O::Out, at: usize, count: usize) {
        // SAFETY: the condition of this function; light operations are the same instructions with and without FMA.
        unsafe {
            O::tile::<false>(
                std::slice::from_raw_parts(self.a.at(at), count),
                std::slice::from_raw_parts(self.b.at(at), count),
                std::slice::from_raw_parts(self.c.at(at), count),
                std::slice::from_raw_parts_mut(to.cast(), count),
            );
        }
    }
}

/// Chunk after chunk; fewer elements than one go through [`stepped`].
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub(crate) unsafe fn chunked<O: ElementOp>(
    out: *mut u8,
    ins: &[*const u8; 3],
    repeated: usize,
    len: usize,
) {
    let Some(last) = len.checked_sub(CHUNK_ELEMENTS) else {
        // SAFETY: the caller keeps the invariant.
        return unsafe { stepped::<O>(out, ins, repeated, len) };
    };
    let out = out.cast::<O::Out>();
    let mut both = [ptr::null(); 3];
    // SAFETY: the caller keeps the invariant, and there are results.
    let Read { ins, repeated } = unsafe { Read::new::<O>(ins, repeated, &mut both) };
    let mut blocks = (
        [MaybeUninit::uninit(); CHUNK_ELEMENTS],
        [MaybeUninit::uninit(); CHUNK_ELEMENTS],
        [MaybeUninit::uninit(); CHUNK_ELEMENTS],
    );
    // SAFETY: every operand has an element.
    let operands = unsafe {
        Operands::<O> {
            a: Operand::new(ins[0], is_repeated(repeated, 0), &mut blocks.0),
            b: Operand::new(ins[1], is_repeated(repeated, 1), &mut blocks.1),
            c: Operand::new(ins[2], is_repeated(repeated, 2), &mut blocks.2),
        }
    };
    // After the first chunk, stores are aligned to a vector: the second one begins so much earlier.
    let end = out.addr().wrapping_add(CHUNK_ELEMENTS * size_of::<O::Out>());
    let (mut at, mut next) = (0, CHUNK_ELEMENTS - end % VECTOR_BYTES / size_of::<O::Out>());
    loop {
        // SAFETY: `at` is at most `last`, so that a chunk lies within the result and every operand that is not
        // repeated; a block is a chunk.
        unsafe { operands.compute(out.add(at), at, CHUNK_ELEMENTS) };
        if next > last {
            break;
        }
        (at, next) = (next, next + CHUNK_ELEMENTS);
    }
    // A remainder is less than a chunk: smaller ones, of which the last one overlaps the one before it.
    while next < len {
        at = next.min(len - CHUNK_END_ELEMENTS);
        // SAFETY: as above, and a smaller chunk is less than a chunk.
        unsafe { operands.compute(out.add(at), at, CHUNK_END_ELEMENTS) };
        next = at + CHUNK_END_ELEMENTS;
    }
}

/// Chunk after chunk, with non-temporal stores. The operand `far` is prefetched.
///
/// # Safety
///
/// The invariant of this module, and that of [`super::NonTemporalKernel`]; the caller is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn nontemporal<O: ElementOp>(
    out: *mut u8,
    ins: &[*const u8; 3],
    repeated: usize,
    len: usize,
    far: Option<usize>,
) {
    if len == 0 {
        return;
    }
    let mut both = [ptr::null(); 3];
    // SAFETY: the caller keeps the invariant, and there are results.
    let Read { ins, repeated } = unsafe { Read::new::<O>(ins, repeated, &mut both) };
    let sizes = [size_of::<O::A>(), size_of::<O::B>(), size_of::<O::C>()];
    let far = far.and_then(|n| Some((*ins.get(n)?, *sizes.get(n)?)));
    let most = NONTEMPORAL_BLOCK_BYTES / size_of::<O::Out>();
    let mut blocks = (
        [MaybeUninit::uninit(); NONTEMPORAL_BLOCK_BYTES],
        [MaybeUninit::uninit(); NONTEMPORAL_BLOCK_BYTES],
        [MaybeUninit::uninit(); NONTEMPORAL_BLOCK_BYTES],
    );
    // SAFETY: every operand has an element, if there are results.
    let operands = unsafe {
        Operands::<O> {
            a: Operand::new(ins[0], is_repeated(repeated, 0), &mut blocks.0[..most]),
            b: Operand::new(ins[1], is_repeated(repeated, 1), &mut blocks.1[..most]),
            c: Operand::new(ins[2], is_repeated(repeated, 2), &mut blocks.2[..most]),
        }
    };
    // SAFETY: the result has `len` elements, all of them numbers; the caller is compiled for AVX2.
    unsafe {
        let mut chunks = Chunks { operands, far };
        nontemporal::store_computed::<O::Out, true>(out.cast(), len, &mut chunks);
    }
}

/// The operands of [`nontemporal`], and what is prefetched of them: where it is, and the size of an element.
#[cfg(target_arch = "x86_64")]
struct Chunks<O: ElementOp> {
    operands: Operands<O>,
    far: Option<(*const u8, usize)>,
}

#[cfg(target_arch = "x86_64")]
impl<O: ElementOp> nontemporal::Compute<O::Out> for Chunks<O> {
    #[inline(always)]
    unsafe fn compute(&mut self, to: *mut O::Out, from: usize, count: usize) {
        if let Some((far, size)) = self.far {
            prefetch::prefetch_ahead(far.wrapping_add(from * size), count * size);
        }
        // SAFETY: at most a block of results, within the run: operands have that many elements, and blocks hold as many.
        unsafe { self.operands.compute(to, from, count) };
    }
}

/// Room for a tile.
struct Tile<T>([MaybeUninit<T>; TILE]);

impl<T: Copy> Tile<T> {
    const fn empty() -> Self {
        Self([MaybeUninit::uninit(); TILE])
    }

    /// Fills the tile with the element at `from` if it is repeated; otherwise nothing is written, and [`Self::whole`] copies
    /// what it needs.
    ///
    /// # Safety
    ///
    /// `from` is valid for a read, or `T` has no size.
    #[inline(always)]
    unsafe fn repeat(&mut self, from: *const T, is_repeated: bool) {
        if is_repeated {
            // SAFETY: the condition of this function.
            self.0.fill(MaybeUninit::new(unsafe { from.read() }));
        }
    }

    /// The `count` elements from `done` on, and as many more as make whole vectors: in place, or copied here.
    ///
    /// # Safety
    ///
    /// The operand has that many elements, at least one and at most a tile; or one, with which the tile was filled.
    #[inline(always)]
    unsafe fn whole(
        &mut self,
        from: *const T,
        is_repeated: bool,
        done: usize,
        (count, whole): (usize, usize),
    ) -> &[T] {
        let room = self.0.as_mut_ptr().cast::<T>();
        // SAFETY: `whole` elements are there, or are written here: they fit, since a tile is a multiple
        // of whole vectors. An operand beyond the arity has no size: any place will do.
        unsafe {
            let all = if is_repeated || size_of::<T>() == 0 {
                room.cast_const()
            } else if whole == count {
                from.add(done)
            } else {
                let from = from.add(done);
                room.copy_from_nonoverlapping(from, count);
                (count..whole).for_each(|at| room.add(at).write(from.read()));
                room.cast_const()
            };
            std::slice::from_raw_parts(all, whole)
        }
    }
}

/// Tile after tile.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub(crate) unsafe fn tiled<O: ElementOp, const FMA: bool>(
    out: *mut u8,
    ins: &[*const u8; 3],
    repeated: usize,
    len: usize,
) {
    if len == 0 {
        return;
    }
    let out = out.cast::<MaybeUninit<O::Out>>();
    let (a, b, c) = (ins[0].cast::<O::A>(), ins[1].cast::<O::B>(), ins[2].cast::<O::C>());
    let of = [is_repeated(repeated, 0), is_repeated(repeated, 1), is_repeated(repeated, 2)];
    let (mut x, mut y, mut z) = (Tile::empty(), Tile::empty(), Tile::empty());
    // SAFETY: there is a first element of every operand, and one beyond the arity has no size.
    unsafe {
        x.repeat(a, of[0]);
        y.repeat(b, of[1]);
        z.repeat(c, of[2]);
    }
    let mut results = Tile::empty();
    let mut done = 0;
    while done < len {
        let count = TILE.min(len - done);
        let whole = count.next_multiple_of(O::LANES);
        // SAFETY: operands that are not repeated have `len` elements, and so has the result: it is made in
        // place where it is whole vectors, and otherwise moved there.
        unsafe {
            let a = x.whole(a, of[0], done, (count, whole));
            let b = y.whole(b, of[1], done, (count, whole));
            let c = z.whole(c, of[2], done, (count, whole));
            let to = out.add(done);
            let made = if whole == count { to } else { results.0.as_mut_ptr() };
            let to_make = std::slice::from_raw_parts_mut(made, whole);
            match b {
                [b, ..] if O::BY_ONE && of[1] => O::tile_by::<FMA>(a, *b, to_make),
                _ => O::tile::<FMA>(a, b, c, to_make),
            }
            if whole != count {
                to.copy_from_nonoverlapping(made, count);
            }
        }
        done += count;
    }
}
