//! Loops: a body over a stretch, as it is, past the caches, in tiles, or step by step.
//!
//! The invariant is that of [`super`].

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::Weight;
use super::{Body, TILE};
use crate::cpu::nontemporal;
#[cfg(target_arch = "x86_64")]
use crate::cpu::nontemporal::Strip;

/// How far each operand moves from element to element.
pub(crate) const fn steps(pattern: usize) -> [usize; 3] {
    [1 - (pattern & 1), 1 - (pattern >> 1 & 1), 1 - (pattern >> 2 & 1)]
}

/// The loop of a light body.
///
/// # Safety
///
/// The invariant of this module.
#[inline(always)]
pub(crate) unsafe fn light<B: Body, const PATTERN: usize, const FMA: bool>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
) {
    let out = out.cast::<B::Out>();
    let head = nontemporal::head(out, len);
    for (from, to) in [(0, head), (head, len)] {
        if from < to {
            // SAFETY: the caller keeps the invariant.
            unsafe { some::<B, PATTERN, FMA>(out.wrapping_add(from), ins, from, to - from) };
        }
    }
}

/// The loop of a light body, with results that go past the caches.
///
/// # Safety
///
/// The invariant of this module, and that of [`Past`]; the caller is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) unsafe fn past<B: Body, const PATTERN: usize>(
    out: *mut u8,
    ins: [*const u8; 3],
    len: usize,
    strip: &Strip,
) {
    // As [`nontemporal::Far::asked`].
    let wide = B::ARITY == 2 && size_of::<B::A>() >= 2 * size_of::<B::Out>();
    let asks = wide || matches!(B::WEIGHT, Weight::Busy) || nontemporal::likes_help();
    let sizes = [size_of::<B::A>(), size_of::<B::B>(), size_of::<B::C>()];
    let far = strip.far.filter(|_| asks).and_then(|n| Some((*ins.get(n)?, *sizes.get(n)?)));
    let some = |out: *mut B::Out, from: usize, len: usize| {
        if let Some((far, size)) = far {
            nontemporal::ask_ahead(far.wrapping_add(from * size), len * size);
        }
        // SAFETY: the caller keeps the invariant.
        unsafe { some::<B, PATTERN, true>(out, ins, from, len) };
    };
    // SAFETY: the result has `len` elements, all of them numbers; the caller is compiled for AVX2.
    unsafe { nontemporal::results::<B::Out, true>(out.cast(), len, strip, some) };
}

/// Some results of a light body, at least one, from one of a run on. The slices are references, and so promised not
/// to overlap.
///
/// # Safety
///
/// The invariant of this module, and there are so many; `out` is where they go.
#[inline(always)]
unsafe fn some<B: Body, const PATTERN: usize, const FMA: bool>(
    out: *mut B::Out,
    ins: [*const u8; 3],
    from: usize,
    len: usize,
) {
    /// # Safety
    ///
    /// Each slice has `out.len()` elements, or one where its bit of `PATTERN` is set.
    #[inline(always)]
    unsafe fn each<B: Body, const PATTERN: usize, const FMA: bool>(
        out: &mut [MaybeUninit<B::Out>],
        a: &[B::A],
        b: &[B::B],
        c: &[B::C],
    ) {
        for (at, out) in out.iter_mut().enumerate() {
            let place = |number: usize| if PATTERN >> number & 1 == 1 { 0 } else { at };
            // SAFETY: `at` is below the length of every slice that is not repeated.
            let (x, y, z) = unsafe {
                let (x, y) = (*a.get_unchecked(place(0)), *b.get_unchecked(place(1)));
                (x, y, *c.get_unchecked(place(2)))
            };
            out.write(B::at::<FMA>(x, y, z));
        }
    }
    let repeats = |number: usize| PATTERN >> number & 1 == 1;
    let count = |number: usize| if repeats(number) { 1 } else { len };
    // An operand that is not there has no size: any aligned place will do.
    let place = |number: usize, size: usize| {
        if number < B::ARITY {
            ins[number].wrapping_add(if repeats(number) { 0 } else { from * size })
        } else {
            std::ptr::NonNull::<u64>::dangling().as_ptr().cast_const().cast()
        }
    };
    // SAFETY: the invariant gives each operand as many elements as the pattern says, and the
    // result memory that nobody else sees.
    unsafe {
        each::<B, PATTERN, FMA>(
            std::slice::from_raw_parts_mut(out.cast(), len),
            std::slice::from_raw_parts(place(0, size_of::<B::A>()).cast(), count(0)),
            std::slice::from_raw_parts(place(1, size_of::<B::B>()).cast(), count(1)),
            std::slice::from_raw_parts(place(2, size_of::<B::C>()).cast(), count(2)),
        );
    }
}

/// Tiles are whole multiples of this, a vector of the widest level: their loops have no rest.
const LANES: usize = 16;

/// Room for a tile.
struct Room<T>([MaybeUninit<T>; TILE]);

impl<T: Copy> Room<T> {
    /// Filled with the element at `from` where it repeats; otherwise for [`Self::lay`] to fill.
    ///
    /// # Safety
    ///
    /// There is such an element.
    #[inline(always)]
    unsafe fn new(from: *const T, step: usize) -> Self {
        let mut one = MaybeUninit::uninit();
        if step == 0 {
            // SAFETY: the condition of this function.
            one.write(unsafe { from.read() });
        }
        Self([one; TILE])
    }

    /// The `count` elements from `done` on, and as many more as make whole vectors: where they are, or
    /// here.
    ///
    /// # Safety
    ///
    /// There are so many, at least one and at most a tile; or one, with which the room was filled.
    #[inline(always)]
    unsafe fn lay(&mut self, from: *const T, step: usize, done: usize, count: usize) -> &[T] {
        let whole = count.next_multiple_of(LANES);
        let room = self.0.as_mut_ptr().cast::<T>();
        // SAFETY: `whole` elements are there, or are written here: they fit, since a tile is a multiple
        // of whole vectors. An operand that is not there has no size: any place will do.
        unsafe {
            let from = from.add(done * step);
            let all = if step == 0 || size_of::<T>() == 0 {
                room.cast_const()
            } else if whole == count {
                from
            } else {
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
/// The invariant of this module, where a step is 0 for an operand of one element.
#[inline(always)]
pub(crate) unsafe fn tiles<B: Body, const FMA: bool>(
    out: *mut u8,
    ins: [*const u8; 3],
    steps: [usize; 3],
    len: usize,
) {
    if len == 0 {
        return;
    }
    let out = out.cast::<MaybeUninit<B::Out>>();
    let (a, b, c) = (ins[0].cast::<B::A>(), ins[1].cast::<B::B>(), ins[2].cast::<B::C>());
    // SAFETY: there is a first element of every operand, and one that is not there has no size.
    let (mut x, mut y, mut z) =
        unsafe { (Room::new(a, steps[0]), Room::new(b, steps[1]), Room::new(c, steps[2])) };
    let mut results = Room([MaybeUninit::uninit(); TILE]);
    let mut done = 0;
    while done < len {
        let count = TILE.min(len - done);
        let whole = count.next_multiple_of(LANES);
        // SAFETY: operands that move have `len` elements, and the result has, too: it is made in its
        // place where it is whole vectors, and otherwise moved there.
        unsafe {
            let a = x.lay(a, steps[0], done, count);
            let b = y.lay(b, steps[1], done, count);
            let c = z.lay(c, steps[2], done, count);
            let to = out.add(done);
            let made = if whole == count { to } else { results.0.as_mut_ptr() };
            let to_make = std::slice::from_raw_parts_mut(made, whole);
            match b {
                [b, ..] if B::BY_ONE && steps[1] == 0 => B::tile_by::<FMA>(a, *b, to_make),
                _ => B::tile::<FMA>(a, b, c, to_make),
            }
            if whole != count {
                to.copy_from_nonoverlapping(made, count);
            }
        }
        done += count;
    }
}

/// The loop of a heavy body; an operand moves by its step.
///
/// # Safety
///
/// The invariant of this module, where a step is 0 for an operand of one element.
#[inline(never)]
pub(crate) unsafe fn stepped<B: Body>(
    out: *mut u8,
    ins: [*const u8; 3],
    steps: [usize; 3],
    len: usize,
) {
    let out = out.cast::<B::Out>();
    let (a, b, c) = (ins[0].cast::<B::A>(), ins[1].cast::<B::B>(), ins[2].cast::<B::C>());
    for at in 0..len {
        // SAFETY: `at` is below the length of the result and of every operand that moves.
        unsafe {
            let (x, y) = (a.add(at * steps[0]).read(), b.add(at * steps[1]).read());
            let value = B::at::<false>(x, y, c.add(at * steps[2]).read());
            out.add(at).write(value);
        }
    }
}
