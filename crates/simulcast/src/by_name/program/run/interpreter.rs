//! Execution: code over tiles, driven by the loop nest that zips use.
//!
//! The driver brings every leaf to runs on which it is contiguous or repeats; here a run is cut into
//! tiles, and every instruction does one tile before the next does. What repeats along a whole run
//! is computed once for it. From one run to the next only the leaves' pointers change, so that the
//! rest is prepared once. Of code that is a [chain](crate::by_name::program::build::fuse), results that go past the caches are made by
//! one loop instead.
//!
//! Invariant: as in [`crate::exec::inner_loop`]; every leaf's elements are of the type that the code says.

use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::by_name::program::build::bytecode::{Code, From, Kernels, ROOM, Slot};
use crate::by_name::program::build::fuse;
use crate::exec::inner_loop::{Facts, InnerLoop, MAX_OPERANDS, Operands, Repeated, Run};
use simulcast_kernels::cpu::nontemporal::{self, Strip};
use simulcast_kernels::ops::{self, Call};
use simulcast_kernels::pack::pack;

/// The bytes of results that are made at a time, where they go past the caches: the fewer, the sooner
/// memory has something to write, and the more often all is set up.
const STREAMED: usize = 4096;

/// As many, of a lone loop before which memory is asked for, or of a last one that does not stream.
const EACH: usize = 1024;

/// So many loops take long enough for memory to be asked for beside them.
const LONG: usize = 4;

/// An inner loop that interprets code.
pub(crate) struct Interpreter<'c> {
    code: &'c Code,
    prepared: Prepared,
    /// The bytes of a result and of each leaf's elements.
    sizes: [usize; MAX_OPERANDS + 1],
    /// How many operands it is given: the leaves, and perhaps more, which it does not read.
    operands: usize,
}

impl<'c> Interpreter<'c> {
    /// For so many operands, of which the first are the leaves of the code.
    pub(crate) fn new(code: &'c Code, operands: usize) -> Self {
        let mut sizes = [1; MAX_OPERANDS + 1];
        sizes[0] = code.dtype.size();
        sizes[1..].copy_from_slice(&code.sizes);
        Self { code, prepared: Prepared::new(), sizes, operands }
    }
}

// SAFETY: the sizes are those of the types that the code reads and writes; kernels write every result of a run.
unsafe impl InnerLoop for Interpreter<'_> {
    fn facts(&self) -> Facts<'_> {
        let code = self.code;
        let is_chain = code.chain.is_some();
        Facts {
            sizes: &self.sizes[..=self.operands],
            plain: Operands::MAX,
            plain_result: true,
            repeated: Repeated::Element,
            copies: if let From::Leaf(leaf) = code.result { Some(leaf) } else { None },
            nontemporal: is_chain || code.past,
            prefetches: is_chain || code.instructions.len() >= LONG,
            compute_bound: code.spreads,
        }
    }

    unsafe fn contiguous(&mut self, run: &Run<'_>) {
        let Run { out, ins, repeated, len, .. } = *run;
        if let From::Leaf(leaf) = self.code.result
            && repeated >> leaf & 1 == 0
        {
            let bytes = len * self.code.dtype.size();
            // SAFETY: the caller keeps the invariant.
            return unsafe { out.copy_from_nonoverlapping(ins[leaf], bytes) };
        }
        // SAFETY: as above.
        unsafe {
            execute(self.code, &mut self.prepared, out, ins, repeated as usize, len, Past::No)
        };
    }

    unsafe fn nontemporal(&mut self, run: &Run<'_>) {
        let Run { out, ins, len, .. } = *run;
        let (code, splat, prefetch) = (self.code, run.repeated as usize, run.prefetch as usize);
        if let Some(chain) = &code.chain {
            let prepared = &mut self.prepared.chain;
            // SAFETY: the caller keeps the invariant; the code has as many leaves as the chain.
            return unsafe {
                fuse::run(chain, prepared, (out, &Strip::NONE), ins, splat, len, prefetch)
            };
        }
        if let Some((past, pointers)) = lone_past(code, ins, splat) {
            let strip = Strip { far: first_of(code, prefetch), ..Strip::NONE };
            // SAFETY: as above, and the pattern says what repeats.
            return unsafe { past(out, pointers, len, &strip) };
        }
        let size = code.dtype.size();
        let whole = if code.instructions.len() > 1 { STREAMED } else { EACH } / size;
        // The first results end at a cache line, so that all others are whole lines.
        let mut count = whole - out.addr() % nontemporal::LINE / size;
        let mut done = 0;
        while done < len {
            count = nontemporal::part(len - done, count);
            let mut at = [std::ptr::null(); MAX_OPERANDS];
            for (n, (place, &from)) in at.iter_mut().zip(ins).enumerate() {
                let step = if splat >> n & 1 == 1 { 0 } else { self.sizes[n + 1] };
                *place = from.wrapping_add(done * step);
            }
            let (to, at) = (out.wrapping_add(done * size), &at[..ins.len()]);
            // SAFETY: as above, for `count` results from there on.
            unsafe {
                execute(code, &mut self.prepared, to, at, splat, count, Past::Asking(prefetch))
            };
            done += count;
            count = whole;
        }
    }

    unsafe fn strided(&mut self, out: *mut u8, ins: &[*const u8], steps: &[isize], len: usize) {
        const SIDE: usize = 256;
        type Room = [MaybeUninit<[u64; 2]>; SIDE];
        let size = self.code.dtype.size();
        let splat = ins.iter().zip(&steps[1..]).enumerate();
        let splat = splat.fold(0, |mask, (n, (_, &step))| mask | usize::from(step == 0) << n);
        let mut rooms: Vec<Room> = Vec::with_capacity(ins.len());
        let mut results = [MaybeUninit::<[u64; 2]>::uninit(); SIDE];
        let mut done = 0;
        while done < len {
            let count = SIDE.min(len - done);
            let at = done.cast_signed();
            // SAFETY: `count` elements of at most 16 bytes fit in each room, one for each leaf, whose memory is there;
            // leaves and output reach them along their steps.
            unsafe {
                let mut gathered = [std::ptr::null(); MAX_OPERANDS];
                for (n, place) in gathered[..ins.len()].iter_mut().enumerate() {
                    let (own, step) = (self.sizes[n + 1], steps[n + 1]);
                    let from = ins[n].offset(at * step);
                    *place = from;
                    if step != 0 && step != own.cast_signed() {
                        let room = rooms.as_mut_ptr().add(n).cast::<u8>();
                        pack::<false>(own, room, from, &[(count, step / own.cast_signed())]);
                        *place = room.cast_const();
                    }
                }
                let to = results.as_mut_ptr().cast::<u8>();
                execute(
                    self.code,
                    &mut self.prepared,
                    to,
                    &gathered[..ins.len()],
                    splat,
                    count,
                    Past::No,
                );
                for k in 0..count {
                    let place = out.offset((at + k.cast_signed()) * steps[0]);
                    std::ptr::copy_nonoverlapping(to.add(k * size), place, size);
                }
            }
            done += count;
        }
    }
}

/// Whether results go past the caches.
#[derive(Clone, Copy)]
enum Past {
    No,
    /// They do, and beside each loop leaves are asked for: a bit for each.
    Asking(usize),
}

/// An instruction with its pointers: what it reads and writes, and how far each moves for an
/// element.
#[derive(Clone, Copy)]
struct Active {
    call: Call,
    out: *mut u8,
    out_step: usize,
    ins: [*const u8; 3],
    steps: [usize; 3],
}

/// Memory for registers.
#[repr(C, align(64))]
struct Registers([MaybeUninit<u8>; 4096]);

/// Code with its pointers, for one pattern of leaves that repeat.
struct Prepared {
    /// The pattern, and whether results go past the caches; none yet, where it is not ready.
    splat: usize,
    past: bool,
    ready: bool,
    registers: Vec<Registers>,
    /// Which instructions repeat, and their values.
    repeats: Vec<bool>,
    scalars: Vec<[u64; 2]>,
    /// Instructions that repeat, with the leaves that they read.
    once: Vec<Active>,
    once_slots: Vec<Slot>,
    /// All others.
    active: Vec<Active>,
    slots: Vec<Slot>,
    /// Where the result is, if no instruction writes it: a leaf, or a place; and whether it repeats.
    whole: Option<(From, *const u8, bool)>,
    /// All that a chain needs instead.
    chain: fuse::Prepared,
}

impl Prepared {
    const fn new() -> Self {
        Self {
            splat: 0,
            past: false,
            ready: false,
            registers: Vec::new(),
            repeats: Vec::new(),
            scalars: Vec::new(),
            once: Vec::new(),
            once_slots: Vec::new(),
            active: Vec::new(),
            slots: Vec::new(),
            whole: None,
            chain: fuse::Prepared::new(),
        }
    }

    /// Prepares code for a pattern.
    #[inline(never)]
    fn prepare(&mut self, code: &Code, splat: usize, past: bool) {
        let count = code.instructions.len();
        if self.registers.capacity() == 0
            && let Some(spare) = SPARE.take()
        {
            *self = spare;
        }
        self.registers
            .reserve_exact((code.registers * code.stride).div_ceil(size_of::<Registers>()));
        self.scalars.clear();
        self.scalars.resize(count, [0; 2]);
        (self.splat, self.past, self.ready, self.whole) = (splat, past, true, None);
        self.once.clear();
        self.once_slots.clear();
        self.active.clear();
        self.slots.clear();
        let registers: *mut u8 = self.registers.as_mut_ptr().cast();
        let scalars: *mut [u64; 2] = self.scalars.as_mut_ptr();
        let scalar = |made: usize| scalars.wrapping_add(made).cast::<u8>();
        let constant = |constant: usize| (&raw const code.constants[constant]).cast::<u8>();
        self.repeats.clear();
        self.repeats.resize(count, false);
        let repeats = &mut self.repeats;
        for (at, one) in code.instructions.iter().enumerate() {
            let (mut ins, mut steps, mut pattern) = ([std::ptr::null(); 3], [0; 3], 0);
            for (k, from) in one.args.iter().enumerate() {
                let repeat = match from {
                    From::Leaf(leaf) => {
                        let repeat = splat >> leaf & 1;
                        steps[k] = if repeat == 1 { 0 } else { code.sizes[leaf] };
                        repeat
                    }
                    From::Constant(at) => {
                        ins[k] = constant(at);
                        1
                    }
                    From::Made(made) if repeats[made] => {
                        ins[k] = scalar(made);
                        1
                    }
                    From::Made(made) => {
                        let register = code.instructions[made].register * code.stride;
                        ins[k] = registers.wrapping_add(register);
                        0
                    }
                };
                pattern |= repeat << k;
            }
            let all = pattern + 1 == 1 << one.args.count;
            let (list, slots, out, out_step, call) = if all {
                repeats[at] = true;
                let call = Call::Stay(one.kernels.of(0));
                (&mut self.once, &mut self.once_slots, scalar(at), 0, call)
            } else {
                let register = registers.wrapping_add(one.register * code.stride);
                // The last one writes the result, wherever that is to be.
                let last = at + 1 == count;
                let out_step = if last { code.dtype.size() } else { 0 };
                let call = one.kernels.call(pattern, past && last);
                (&mut self.active, &mut self.slots, register, out_step, call)
            };
            for (arg, from) in one.args.iter().enumerate() {
                if let From::Leaf(leaf) = from {
                    slots.push(Slot { instruction: list.len(), arg, leaf });
                }
            }
            list.push(Active { call, out, out_step, ins, steps });
        }
        self.whole = match code.result {
            From::Leaf(leaf) => Some((code.result, std::ptr::null(), splat >> leaf & 1 == 1)),
            From::Constant(at) => Some((code.result, constant(at), true)),
            From::Made(made) if repeats[made] => {
                Some((code.result, scalar(made).cast_const(), true))
            }
            From::Made(_) => None,
        };
    }
}

thread_local! {
    /// Memory that a program left behind on this thread, for the next one.
    static SPARE: Cell<Option<Prepared>> = const { Cell::new(None) };
}

impl Drop for Interpreter<'_> {
    #[inline]
    fn drop(&mut self) {
        self.prepared.chain.leave();
        let kept = self.prepared.registers.capacity();
        if kept > 0 && kept * size_of::<Registers>() <= 2 * ROOM {
            let prepared = std::mem::replace(&mut self.prepared, Prepared::new());
            // Where the thread is ending there is no place for it, and it is freed.
            let _freed = SPARE.try_with(|spare| spare.set(Some(prepared)));
        }
    }
}

/// The loops of code that is one instruction on leaves and constants, not all of which repeat, with their pattern, and
/// what they read: such code needs no tiles at all.
struct Lone {
    kernels: Kernels,
    pattern: usize,
    pointers: [*const u8; 3],
}

/// [`Lone`] code with what it reads, if that is what it is.
#[inline(always)]
fn lone(code: &Code, ins: &[*const u8], splat: usize) -> Option<Lone> {
    let [one] = &code.instructions[..] else { return None };
    if matches!(code.result, From::Leaf(_)) {
        return None;
    }
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
    (pattern + 1 < 1 << one.args.count).then_some(Lone { kernels: one.kernels, pattern, pointers })
}

/// The loop of [`lone`] code whose results go past the caches, where there is one, and what it reads.
#[inline(always)]
fn lone_past(code: &Code, ins: &[*const u8], splat: usize) -> Option<(ops::Past, [*const u8; 3])> {
    let lone = lone(code, ins, splat)?;
    Some((lone.kernels.past(lone.pattern)?, lone.pointers))
}

/// The first operand of [`lone`] code that is one of some leaves, a bit for each.
#[inline(always)]
fn first_of(code: &Code, leaves: usize) -> Option<usize> {
    let mut args = code.instructions.first()?.args.iter();
    args.position(|from| matches!(from, From::Leaf(leaf) if leaves >> leaf & 1 == 1))
}

/// Code over a run: `splat` says which leaves repeat.
///
/// # Safety
///
/// The invariant of this module: `out` has room for `len` results, and every leaf has `len`
/// elements, or one where its bit of `splat` is set. What is prepared is for this code. Results that
/// go `past` the caches need a fence.
#[inline(never)]
unsafe fn execute(
    code: &Code,
    prepared: &mut Prepared,
    out: *mut u8,
    ins: &[*const u8],
    splat: usize,
    len: usize,
    past: Past,
) {
    let (past, ask) = match past {
        Past::No => (false, 0),
        Past::Asking(leaves) => (true, leaves),
    };
    if let Some(Lone { kernels, pattern, pointers }) = lone(code, ins, splat) {
        nontemporal::ask_for(ask, ins, &code.sizes, 0..len);
        // SAFETY: the caller keeps the invariant, and the pattern says what repeats.
        return unsafe { kernels.call(pattern, past).run(out, pointers, len) };
    }
    if !prepared.ready || (prepared.splat, prepared.past) != (splat, past) {
        prepared.prepare(code, splat, past);
    }
    let Prepared { once, once_slots, active, slots, .. } = prepared;
    for slot in &*once_slots {
        once[slot.instruction].ins[slot.arg] = ins[slot.leaf];
    }
    for one in &*once {
        // SAFETY: one element of each operand; a value of any type fits in its place.
        unsafe { one.call.run(one.out, one.ins, 1) };
    }
    if let Some((from, pointer, repeats)) = prepared.whole {
        let pointer = if let From::Leaf(leaf) = from { ins[leaf] } else { pointer };
        // SAFETY: one element, or `len` of them, of the result's size.
        unsafe { pack::<false>(code.dtype.size(), out, pointer, &[(len, isize::from(!repeats))]) };
        return;
    }
    for slot in &*slots {
        active[slot.instruction].ins[slot.arg] = ins[slot.leaf];
    }
    if let Some(last) = active.last_mut() {
        last.out = out;
    }
    // Each loop of a tile asks for as much of it: a division for every one would take as long.
    let tile = code.tile.min(len);
    let (mut done, each) = (0, if ask == 0 { 0 } else { tile.div_ceil(active.len().max(1)) });
    while done < len {
        let part = tile.min(len - done);
        let mut asked = 0;
        for one in &mut *active {
            if asked < part && ask != 0 {
                let upto = (asked + each).min(part);
                nontemporal::ask_for(ask, ins, &code.sizes, done + asked..done + upto);
                asked = upto;
            }
            // SAFETY: a tile fits in its register; leaves and output advance by what is done,
            // within the run.
            unsafe { one.call.run(one.out, one.ins, part) };
            one.out = one.out.wrapping_add(one.out_step * part);
            for (pointer, step) in one.ins.iter_mut().zip(one.steps) {
                *pointer = pointer.wrapping_add(step * part);
            }
        }
        done += part;
    }
}
