//! Execution: code over tiles, driven by the loop nest that zips use.
//!
//! The driver brings every leaf to runs on which it is contiguous or repeats; here a run is cut into
//! tiles, and every instruction does one tile before the next does. What repeats along a whole run
//! is computed once for it.
//!
//! Invariant: as in [`crate::kernel`]; every leaf's elements are of the type that the code says.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::code::{Code, From, ROOM};
use crate::kernel::Body;
use crate::kernels::Kernel;
use crate::pack::pack;

/// A body that interprets code; `R` has the size and the alignment of the result's elements.
pub(crate) struct Interpreter<'c, R, const N: usize> {
    code: &'c Code,
    out: PhantomData<R>,
}

impl<'c, R, const N: usize> Interpreter<'c, R, N> {
    /// # Safety
    ///
    /// `R` has the size of the result's elements and at most their alignment; `N` is at least the
    /// number of leaves.
    pub(crate) const unsafe fn new(code: &'c Code) -> Self {
        Self { code, out: PhantomData }
    }
}

impl<R: Copy, const N: usize> Body<N> for Interpreter<'_, R, N> {
    type Out = R;
    const PATTERNS: bool = true;
    const OWN_LEVELS: bool = true;
    const STREAMED: usize = 4096;

    #[inline(always)]
    fn sizes(&self) -> [usize; N] {
        std::array::from_fn(|n| self.code.sizes.get(n).copied().unwrap_or(1))
    }

    #[inline(always)]
    fn plain(&self) -> [bool; N] {
        [true; N]
    }

    #[inline(always)]
    fn done(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn dense(&mut self, out: *mut R, ins: [*const u8; N], splat: usize, len: usize) {
        // SAFETY: the caller keeps the invariant.
        unsafe { run(self.code, out.cast(), &ins, splat, len) };
    }

    unsafe fn strided(
        &mut self,
        out: *mut R,
        step: isize,
        ins: [*const u8; N],
        steps: [isize; N],
        len: usize,
    ) {
        const SIDE: usize = 256;
        let sizes = self.sizes();
        let splat = (0..N).fold(0, |mask, n| mask | usize::from(steps[n] == 0) << n);
        let mut rooms: Vec<[MaybeUninit<[u64; 2]>; SIDE]> = Vec::with_capacity(N);
        let mut results: [MaybeUninit<R>; SIDE] = [MaybeUninit::uninit(); SIDE];
        let mut done = 0;
        while done < len {
            let count = SIDE.min(len - done);
            let at = done.cast_signed();
            // SAFETY: `count` elements of at most 16 bytes fit in each of the `N` rooms, whose
            // memory is there; leaves and output reach them along their steps.
            unsafe {
                let gathered = std::array::from_fn::<_, N, _>(|n| {
                    let from = ins[n].offset(at * steps[n] * sizes[n].cast_signed());
                    if matches!(steps[n], 0 | 1) {
                        return from;
                    }
                    let room = rooms.as_mut_ptr().add(n).cast::<u8>();
                    pack(sizes[n], room, from, &[(count, steps[n])]);
                    room.cast_const()
                });
                run(self.code, results.as_mut_ptr().cast(), &gathered, splat, count);
                for (k, result) in results.iter().take(count).enumerate() {
                    out.offset((at + k.cast_signed()) * step).write(result.assume_init());
                }
            }
            done += count;
        }
    }
}

/// An instruction with its pointers: what it reads and writes, and how far each moves for an
/// element.
#[derive(Clone, Copy)]
struct Active {
    kernel: Kernel,
    out: *mut u8,
    out_step: usize,
    ins: [*const u8; 3],
    steps: [usize; 3],
}

/// How many instructions need no allocation.
const FEW: usize = 24;

/// Memory for registers.
#[repr(C, align(64))]
struct Registers([MaybeUninit<u8>; ROOM]);

/// Code over a run: `splat` says which leaves repeat.
///
/// # Safety
///
/// The invariant of this module: `out` has room for `len` results, and every leaf has `len`
/// elements, or one where its bit of `splat` is set.
#[inline(never)]
unsafe fn run(code: &Code, out: *mut u8, ins: &[*const u8], splat: usize, len: usize) {
    // One instruction on leaves and constants alone needs no tiles at all.
    if let [one] = &code.instructions[..]
        && !matches!(code.result, From::Leaf(_))
    {
        let (mut pointers, mut pattern) = ([std::ptr::null(); 3], 0);
        for (k, from) in one.args.iter().enumerate() {
            let (pointer, repeats) = match from {
                From::Leaf(leaf) => (ins[leaf], splat >> leaf & 1),
                From::Constant(constant) => ((&raw const code.constants[constant]).cast(), 1),
                From::Made(_) => (std::ptr::null(), 0),
            };
            pointers[k] = pointer;
            pattern |= repeats << k;
        }
        if pattern + 1 < 1 << one.args.count {
            // SAFETY: the caller keeps the invariant, and the pattern says what repeats.
            return unsafe { (one.kernels.of(pattern))(out, pointers, len) };
        }
    }
    // SAFETY: the caller keeps the invariant.
    unsafe { tiled(code, out, ins, splat, len) };
}

/// [`run`], instruction by instruction over tiles.
///
/// # Safety
///
/// As there.
unsafe fn tiled(code: &Code, out: *mut u8, ins: &[*const u8], splat: usize, len: usize) {
    let count = code.instructions.len();
    let size = code.dtype.size();
    let mut here = MaybeUninit::<Registers>::uninit();
    let mut heap: Vec<Registers> = Vec::new();
    let bytes = code.registers * code.stride();
    let registers: *mut u8 = if bytes <= ROOM {
        here.as_mut_ptr().cast()
    } else {
        heap.reserve_exact(bytes.div_ceil(ROOM));
        heap.as_mut_ptr().cast()
    };
    // The values of instructions that repeat, and which do.
    let mut few = [MaybeUninit::<[u64; 2]>::uninit(); FEW];
    let mut many: Vec<[u64; 2]> = Vec::new();
    let scalars: *mut [u64; 2] = if count <= FEW {
        few.as_mut_ptr().cast()
    } else {
        many.reserve_exact(count);
        many.as_mut_ptr()
    };
    let mut few_repeat = [false; FEW];
    let mut many_repeat = Vec::new();
    let repeats: &mut [bool] = if count <= FEW {
        &mut few_repeat
    } else {
        many_repeat.resize(count, false);
        &mut many_repeat
    };
    let mut few_active = [MaybeUninit::<Active>::uninit(); FEW];
    let mut many_active: Vec<MaybeUninit<Active>> = Vec::new();
    let active: &mut [MaybeUninit<Active>] = if count <= FEW {
        &mut few_active
    } else {
        many_active.resize(count, MaybeUninit::uninit());
        &mut many_active
    };

    let mut running = 0;
    for (at, one) in code.instructions.iter().enumerate() {
        let (mut pointers, mut steps, mut pattern) = ([std::ptr::null::<u8>(); 3], [0; 3], 0);
        for (k, from) in one.args.iter().enumerate() {
            let (pointer, step, repeat) = match from {
                From::Leaf(leaf) => {
                    let repeat = splat >> leaf & 1;
                    (ins[leaf], if repeat == 1 { 0 } else { code.sizes[leaf] }, repeat)
                }
                From::Constant(constant) => ((&raw const code.constants[constant]).cast(), 0, 1),
                From::Made(made) if repeats[made] => {
                    (scalars.wrapping_add(made).cast_const().cast(), 0, 1)
                }
                From::Made(made) => {
                    let register = code.instructions[made].register * code.stride();
                    (registers.wrapping_add(register).cast_const(), 0, 0)
                }
            };
            (pointers[k], steps[k]) = (pointer, step);
            pattern |= repeat << k;
        }
        if pattern + 1 == 1 << one.args.count {
            repeats[at] = true;
            let place = scalars.wrapping_add(at).cast();
            // SAFETY: one element of each operand; a value of any type fits in its place.
            unsafe { (one.kernels.of(0))(place, pointers, 1) };
            continue;
        }
        let kernel = one.kernels.of(pattern);
        let (out, out_step) = if at + 1 == count {
            (out, size)
        } else {
            (registers.wrapping_add(one.register * code.stride()), 0)
        };
        active[running].write(Active { kernel, out, out_step, ins: pointers, steps });
        running += 1;
    }

    let whole = match code.result {
        From::Leaf(leaf) if splat >> leaf & 1 == 1 => Some((ins[leaf], true)),
        From::Leaf(leaf) => Some((ins[leaf], false)),
        From::Constant(constant) => Some(((&raw const code.constants[constant]).cast(), true)),
        From::Made(made) if repeats[made] => {
            Some((scalars.wrapping_add(made).cast_const().cast(), true))
        }
        From::Made(_) => None,
    };
    if let Some((pointer, repeat)) = whole {
        // SAFETY: one element, or `len` of them, of the result's size.
        unsafe { pack(size, out, pointer, &[(len, isize::from(!repeat))]) };
        return;
    }

    let mut done = 0;
    while done < len {
        let part = code.tile.min(len - done);
        for one in active.iter_mut().take(running) {
            // SAFETY: the first `running` were written above. A tile fits in its register; leaves
            // and output advance by what is done, within the run.
            unsafe {
                let one = one.assume_init_mut();
                (one.kernel)(one.out, one.ins, part);
                one.out = one.out.wrapping_add(one.out_step * part);
                for (pointer, step) in one.ins.iter_mut().zip(one.steps) {
                    *pointer = pointer.wrapping_add(step * part);
                }
            }
        }
        done += part;
    }
}
