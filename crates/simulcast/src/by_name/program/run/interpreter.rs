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
use crate::exec::inner_loop::{Body, row_by_row};
use crate::layout::loop_nest::Loop;
use simulcast_kernels::cpu::nontemporal::{self, Far, Strip};
use simulcast_kernels::ops::{self, Call};
use simulcast_kernels::pack::pack;

/// The bytes of results that are made at a time, where they go past the caches: the fewer, the sooner
/// memory has something to write, and the more often all is set up.
const STREAMED: usize = 4096;

/// As many, of a lone loop before which memory is asked for, or of a last one that does not stream.
const EACH: usize = 1024;

/// So many loops take long enough for memory to be asked for beside them.
const LONG: usize = 4;

/// Room for results.
#[repr(C, align(64))]
struct Room([MaybeUninit<u8>; EACH]);

/// A body that interprets code. Its results are bytes, some for each: one body serves all types.
pub(crate) struct Interpreter<'c, const N: usize> {
    code: &'c Code,
    prepared: Prepared,
}

impl<'c, const N: usize> Interpreter<'c, N> {
    /// # Safety
    ///
    /// `N` is at least the number of leaves.
    pub(crate) const unsafe fn new(code: &'c Code) -> Self {
        Self { code, prepared: Prepared::new() }
    }
}

impl<const N: usize> Body<N> for Interpreter<'_, N> {
    type Out = u8;
    const PATTERNS: bool = true;
    const OWN_LEVELS: bool = true;

    #[inline(always)]
    fn unit(&self) -> usize {
        self.code.dtype.size()
    }

    #[inline(always)]
    fn spreads(&self) -> bool {
        self.code.spreads
    }

    #[inline(always)]
    fn identity(&self) -> usize {
        let places = self.code.instructions.iter().map(|one| one.kernels.of(0) as usize);
        places.fold(0, |all, place| all.rotate_left(7) ^ place)
    }

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
    unsafe fn dense(&mut self, out: *mut u8, ins: [*const u8; N], splat: usize, len: usize) {
        if let From::Leaf(leaf) = self.code.result
            && splat >> leaf & 1 == 0
        {
            let bytes = len * self.code.dtype.size();
            // SAFETY: the caller keeps the invariant.
            return unsafe { out.copy_from_nonoverlapping(ins[leaf], bytes) };
        }
        // SAFETY: as above.
        unsafe { run(self.code, &mut self.prepared, out, &ins, splat, len, Past::No) };
    }

    /// Where there is at most one loop for each.
    #[inline(always)]
    fn takes_rows(&self) -> bool {
        self.code.instructions.len() <= 1
    }

    #[inline(always)]
    unsafe fn rows(
        &mut self,
        mut out: *mut u8,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        rows: &Loop<N>,
    ) {
        let (code, size) = (self.code, self.code.dtype.size());
        if let From::Leaf(leaf) = code.result
            && rows.out == (len * size).cast_signed()
        {
            let repeats = splat >> leaf & 1 == 1;
            let loops = [(rows.len, rows.ins[leaf]), (len, isize::from(!repeats))];
            // SAFETY: the caller keeps the invariant, and the rows follow each other.
            return unsafe { pack::<false>(size, out, ins[leaf], &loops) };
        }
        let Some(Lone { kernels, pattern, mut pointers }) = lone(code, &ins, splat) else {
            // SAFETY: the caller keeps the invariant.
            return unsafe { row_by_row(self, out, ins, splat, len, rows) };
        };
        let (kernel, steps) = (kernels.of(pattern), steps(code, rows));
        for _ in 0..rows.len {
            // SAFETY: the caller keeps the invariant.
            unsafe { kernel(out, pointers, len) };
            out = out.wrapping_offset(rows.out);
            for (pointer, step) in pointers.iter_mut().zip(steps) {
                *pointer = pointer.wrapping_offset(step);
            }
        }
    }

    #[inline(always)]
    unsafe fn streamed<const WIDE: bool>(
        &mut self,
        out: *mut u8,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        far: Far,
    ) {
        let (sizes, size) = (self.sizes(), self.code.dtype.size());
        let leaf = self.copies();
        let repeats = leaf.is_some_and(|leaf| splat >> leaf & 1 == 1);
        if let Some(leaf) = leaf.filter(|_| !repeats) {
            // SAFETY: the caller keeps the invariant.
            return unsafe { nontemporal::copy::<WIDE>(out, ins[leaf], len * size) };
        }
        if let Some(chain) = &self.code.chain {
            let prepared = &mut self.prepared.chain;
            let (to, far) = ((out, &Strip::NONE), far.operands);
            // SAFETY: as above; the code has as many leaves as the chain.
            return unsafe { fuse::run(chain, prepared, to, &ins, splat, len, far) };
        }
        if far.only().is_none()
            && let Some((past, pointers)) = lone_past(self.code, &ins, splat)
        {
            let strip = Strip { far: first_of(self.code, far.operands), ..Strip::NONE };
            // SAFETY: as above, and the pattern says what repeats.
            return unsafe { past(out, pointers, len, &strip) };
        }
        let mut room = Room([MaybeUninit::uninit(); EACH]);
        let made = room.0.as_mut_ptr().cast::<u8>();
        if repeats {
            // SAFETY: as many results as the room holds.
            unsafe { self.dense(made, ins, splat, EACH / size) };
        }
        let (loops, past) = (self.code.instructions.len(), self.code.past);
        let asks = loops >= LONG || far.only().is_some() || nontemporal::likes_help();
        let ask = if past && asks { far.operands } else { 0 };
        let whole = if past && loops > 1 { STREAMED / size } else { EACH / size };
        // The first results end at a line, so that all others are whole lines.
        let mut count = whole - out.addr() % nontemporal::LINE / size;
        let mut done = 0;
        while done < len {
            if past {
                count = nontemporal::part(len - done, count);
            } else {
                count = count.min(len - done);
            }
            let at = std::array::from_fn(|n| {
                ins[n].wrapping_add(if splat >> n & 1 == 1 { 0 } else { done * sizes[n] })
            });
            let to = out.wrapping_add(done * size);
            // SAFETY: the caller keeps the invariant, and `count` results fit in the room where they go there.
            unsafe {
                if past {
                    run(self.code, &mut self.prepared, to, &at, splat, count, Past::Asking(ask));
                } else {
                    if !repeats {
                        self.dense(made, at, splat, count);
                    }
                    nontemporal::copy::<WIDE>(to, made, count * size);
                }
            }
            done += count;
            count = whole;
        }
    }

    #[inline(always)]
    fn copies(&self) -> Option<usize> {
        if let From::Leaf(leaf) = self.code.result { Some(leaf) } else { None }
    }

    #[inline(always)]
    fn strips(&self) -> bool {
        let lone = self.code.past && self.code.instructions.len() == 1;
        self.copies().is_some() || self.code.chain.is_some() || lone
    }

    #[inline(always)]
    unsafe fn strip<const WIDE: bool>(
        &mut self,
        out: *mut u8,
        ins: [*const u8; N],
        splat: usize,
        len: usize,
        strip: &Strip,
    ) {
        let size = self.code.dtype.size();
        // SAFETY: the caller keeps the invariant, and the pattern says what repeats.
        unsafe {
            if let Some(chain) = &self.code.chain {
                let prepared = &mut self.prepared.chain;
                return fuse::run(chain, prepared, (out, strip), &ins, splat, len, 0);
            }
            if let Some((past, pointers)) = lone_past(self.code, &ins, splat) {
                return past(out, pointers, len, strip);
            }
            if strip.is_none() {
                return self.streamed::<WIDE>(out, ins, splat, len, Far::NONE);
            }
            if let Some(leaf) = self.copies().filter(|&leaf| splat >> leaf & 1 == 0) {
                return nontemporal::copy_strip::<WIDE>(out, ins[leaf], len * size, strip);
            }
            // All is one element.
            let (mut to, mut ask) = (out, strip.ask);
            for _ in 0..len * size / nontemporal::ROW {
                ask.some();
                self.streamed::<WIDE>(to, ins, splat, nontemporal::ROW / size, Far::NONE);
                to = to.wrapping_offset(strip.pitch);
            }
        }
    }

    unsafe fn strided(
        &mut self,
        out: *mut u8,
        step: isize,
        ins: [*const u8; N],
        steps: [isize; N],
        len: usize,
    ) {
        const SIDE: usize = 256;
        let sizes = self.sizes();
        let splat = (0..N).fold(0, |mask, n| mask | usize::from(steps[n] == 0) << n);
        let mut rooms: Vec<[MaybeUninit<[u64; 2]>; SIDE]> = Vec::with_capacity(N);
        let mut results = [MaybeUninit::<[u64; 2]>::uninit(); SIDE];
        let size = self.code.dtype.size();
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
                    pack::<false>(sizes[n], room, from, &[(count, steps[n])]);
                    room.cast_const()
                });
                let to = results.as_mut_ptr().cast::<u8>();
                run(self.code, &mut self.prepared, to, &gathered, splat, count, Past::No);
                for k in 0..count {
                    let place = out.offset((at + k.cast_signed()) * step);
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

impl<const N: usize> Drop for Interpreter<'_, N> {
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

/// How far what [`lone`] code reads moves from row to row, in bytes.
#[inline(always)]
fn steps<const N: usize>(code: &Code, rows: &Loop<N>) -> [isize; 3] {
    let mut steps = [0; 3];
    for (place, from) in steps.iter_mut().zip(code.instructions[0].args.iter()) {
        if let From::Leaf(leaf) = from {
            *place = rows.ins[leaf].wrapping_mul(code.sizes[leaf].cast_signed());
        }
    }
    steps
}

/// Code over a run: `splat` says which leaves repeat.
///
/// # Safety
///
/// The invariant of this module: `out` has room for `len` results, and every leaf has `len`
/// elements, or one where its bit of `splat` is set. What is prepared is for this code. Results that
/// go `past` the caches need a fence.
#[inline(never)]
unsafe fn run(
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
