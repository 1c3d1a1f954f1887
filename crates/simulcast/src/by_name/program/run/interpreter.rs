//! Execution: code over tiles, driven by the loop nest that zips use.
//!
//! The driver brings every leaf to runs on which it is contiguous or repeats; here a run is cut into
//! tiles, and every instruction does one tile before the next does. What repeats along a whole run
//! is computed once for it. From one run to the next only the leaves' pointers change, so that the
//! rest is prepared once. Code that is a [chain](crate::by_name::program::build::chain) is one loop instead: with
//! non-temporal stores, and with ordinary ones where it pays (`Chain::pays_in_cache`).
//!
//! Invariant: as in [`crate::exec::inner_loop`]; every leaf's elements are of the type that the code says.

use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::by_name::program::build::bytecode::{Code, From, Slot};
use crate::by_name::program::build::chain;
use crate::exec::inner_loop::{Facts, InnerLoop, MAX_OPERANDS, Operands, Repeated, RowLoop, Run};
use crate::exec::strategy::Stores;
use simulcast_kernels::cpu::{nontemporal, prefetch};
use simulcast_kernels::ops::Kernels;
use simulcast_kernels::pack::pack;
use simulcast_kernels::tuning::{
    CACHE_LINE_BYTES, CACHED_CHAIN_STEPS, NONTEMPORAL_PIECE_BYTES, REGISTER_BYTES,
    STRIDED_PIECE_ELEMENTS, UNASKED_OPERATIONS,
};
use simulcast_threads::checkpoint;

/// An inner loop that interprets code.
pub(crate) struct Interpreter<'c> {
    code: &'c Code,
    /// The number of operands that it is given: the leaves, and perhaps more, which it does not read.
    operands: usize,
    /// Made for the first run that needs them.
    bindings: Option<Box<Bindings>>,
    /// Operations of single instructions since it was asked whether to stop.
    unasked: usize,
}

impl<'c> Interpreter<'c> {
    /// For so many operands, of which the first are the leaves of the code.
    pub(crate) const fn new(code: &'c Code, operands: usize) -> Self {
        Self { code, operands, bindings: None, unasked: 0 }
    }
}

// SAFETY: the sizes are those of the types that the code reads and writes; kernels write every result of a run.
unsafe impl InnerLoop for Interpreter<'_> {
    fn facts(&self) -> Facts<'_> {
        let code = self.code;
        let is_chain = code.chain.is_some();
        Facts {
            sizes: &code.sizes[..=self.operands],
            plain: Operands::MAX,
            plain_result: true,
            repeated: Repeated::Element,
            copies: if let From::Leaf(leaf) = code.result { Some(leaf) } else { None },
            nontemporal: is_chain || code.has_nontemporal,
            prefetches: code.prefetches,
            compute_bound: code.compute_bound,
            operations: code.instructions.len(),
        }
    }

    unsafe fn contiguous(&mut self, run: &Run<'_>, rows: RowLoop<'_>) {
        if run.stores == Stores::NonTemporal {
            // SAFETY: the caller keeps the conditions.
            return unsafe { self.nontemporal(run) };
        }
        let Run { mut out, ins, len, .. } = *run;
        let (code, repeated_leaves) = (self.code, run.repeated as usize);
        let mut pointers = [std::ptr::null(); 3];
        if let Some((kernels, repeated)) = lone(code, ins, repeated_leaves, &mut pointers) {
            let args = &code.instructions[0].args.from;
            let mut down = [0; 3];
            for (step, from) in down.iter_mut().zip(args) {
                if let From::Leaf(leaf) = from {
                    *step = rows.steps[leaf + 1];
                }
            }
            for _ in 0..rows.count {
                // Mostly a row is one piece.
                if len <= UNASKED_OPERATIONS {
                    count(&mut self.unasked, len);
                    // SAFETY: the caller keeps the invariant, and the pattern says what repeats.
                    unsafe { (kernels.cached)(out, &pointers, repeated, len) };
                } else {
                    // SAFETY: as above.
                    unsafe { self.pieces(&kernels, out, pointers, repeated, len) };
                }
                out = out.wrapping_offset(rows.steps[0]);
                for (pointer, step) in pointers.iter_mut().zip(down) {
                    *pointer = pointer.wrapping_offset(step);
                }
            }
            return;
        }
        let mut places = [std::ptr::null(); MAX_OPERANDS];
        let ins = &mut places[..ins.len()];
        ins.copy_from_slice(run.ins);
        for _ in 0..rows.count {
            // SAFETY: the caller keeps the invariant.
            unsafe {
                match code.result {
                    From::Leaf(leaf) if repeated_leaves >> leaf & 1 == 0 => {
                        out.copy_from_nonoverlapping(ins[leaf], len * code.sizes[0]);
                    }
                    _ => self.execute(&Run { out, ins, ..*run }),
                }
            }
            rows.advance(&mut out, ins);
        }
    }

    unsafe fn strided(&mut self, out: *mut u8, ins: &[*const u8], steps: &[isize], len: usize) {
        const SIDE: usize = STRIDED_PIECE_ELEMENTS;
        type Room = [MaybeUninit<[u64; 2]>; SIDE];
        let size = self.code.dtype.size();
        let repeated_leaves = ins.iter().zip(&steps[1..]).enumerate();
        let repeated_leaves =
            repeated_leaves.fold(0, |mask, (n, (_, &step))| mask | usize::from(step == 0) << n);
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
                    let (own, step) = (self.code.sizes[n + 1], steps[n + 1]);
                    let from = ins[n].offset(at * step);
                    *place = from;
                    if step != 0 && step != own.cast_signed() {
                        let room = rooms.as_mut_ptr().add(n).cast::<u8>();
                        pack::<false>(own, room, from, &[(count, step / own.cast_signed())]);
                        *place = room.cast_const();
                    }
                }
                let to = results.as_mut_ptr().cast::<u8>();
                let (ins, repeated) = (&gathered[..ins.len()], repeated_leaves as Operands);
                let run =
                    Run { out: to, ins, repeated, prefetch: 0, stores: Stores::Cached, len: count };
                self.contiguous(&run, RowLoop::ONE);
                for k in 0..count {
                    let place = out.offset((at + k.cast_signed()) * steps[0]);
                    std::ptr::copy_nonoverlapping(to.add(k * size), place, size);
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
    kernels: Kernels,
    nontemporal: bool,
    /// Which operands are repeated: a bit for each.
    repeated: usize,
    out: *mut u8,
    out_step: usize,
    ins: [*const u8; 3],
    steps: [usize; 3],
}

/// Memory for registers.
#[repr(C, align(64))]
struct TileMemory([MaybeUninit<u8>; 4096]);

/// Code with its pointers, for one pattern of leaves that repeat.
#[derive(Default)]
struct Bindings {
    /// The pattern, and whether stores are non-temporal; none before the code is bound.
    bound: Option<(usize, bool)>,
    registers: Vec<TileMemory>,
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
    /// Operations since it was asked whether to stop.
    unasked: usize,
    /// All that a chain needs instead.
    chain: chain::ChainBindings,
}

thread_local! {
    /// Bindings that a program left behind on this thread: their memory, for the next one.
    static SPARE: Cell<Option<Box<Bindings>>> = const { Cell::new(None) };
}

impl Bindings {
    /// Those that were left behind on this thread, or new ones, bound to no code.
    fn spare() -> Box<Self> {
        let mut this = SPARE.take().unwrap_or_default();
        this.bound = None;
        this.chain.unbind();
        this
    }

    /// Leaves them to the next program on this thread, unless they take much memory.
    fn leave(self: Box<Self>) {
        if self.registers.capacity() * size_of::<TileMemory>() <= 2 * REGISTER_BYTES {
            // While the thread ends, its thread-local storage is gone, and the memory is freed.
            let _freed = SPARE.try_with(|spare| spare.set(Some(self)));
        }
    }

    /// Prepares code for a pattern.
    #[inline(never)]
    fn bind(&mut self, code: &Code, repeated_leaves: usize, nontemporal: bool) {
        let count = code.instructions.len();
        self.registers
            .reserve_exact((code.registers * code.stride).div_ceil(size_of::<TileMemory>()));
        self.scalars.clear();
        self.scalars.resize(count, [0; 2]);
        self.bound = Some((repeated_leaves, nontemporal));
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
            let (mut ins, mut steps, mut repeated) = ([std::ptr::null(); 3], [0; 3], 0);
            for (k, from) in one.args.iter().enumerate() {
                let repeat = match from {
                    From::Leaf(leaf) => {
                        let repeat = repeated_leaves >> leaf & 1;
                        steps[k] = if repeat == 1 { 0 } else { code.sizes[leaf + 1] };
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
                repeated |= repeat << k;
            }
            let all = repeated + 1 == 1 << one.args.count;
            let (list, slots, out, out_step, nontemporal) = if all {
                repeats[at] = true;
                (&mut self.once, &mut self.once_slots, scalar(at), 0, false)
            } else {
                let register = registers.wrapping_add(one.register * code.stride);
                // The last one writes the result, wherever that is to be.
                let last = at + 1 == count;
                let out_step = if last { code.dtype.size() } else { 0 };
                (&mut self.active, &mut self.slots, register, out_step, nontemporal && last)
            };
            for (arg, from) in one.args.iter().enumerate() {
                if let From::Leaf(leaf) = from {
                    slots.push(Slot { instruction: list.len(), arg, leaf });
                }
            }
            list.push(Active {
                kernels: one.kernels,
                nontemporal,
                repeated,
                out,
                out_step,
                ins,
                steps,
            });
        }
        self.whole = match code.result {
            From::Leaf(leaf) => {
                Some((code.result, std::ptr::null(), repeated_leaves >> leaf & 1 == 1))
            }
            From::Constant(at) => Some((code.result, constant(at), true)),
            From::Made(made) if repeats[made] => {
                Some((code.result, scalar(made).cast_const(), true))
            }
            From::Made(_) => None,
        };
    }
}

impl Drop for Interpreter<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(bindings) = self.bindings.take() {
            bindings.leave();
        }
    }
}

/// Where the operands of code are that is one instruction: written in place and never moved, because a copy by vectors of
/// pointers that were just written one by one waits until all stores before them are done.
type Pointers = [*const u8; 3];

/// The kernels of code that is one instruction on leaves and constants, not all of which are repeated, and which of its
/// operands are repeated; what they read is written to `pointers`. Such code needs no tiles at all.
#[inline(always)]
fn lone(
    code: &Code,
    ins: &[*const u8],
    repeated_leaves: usize,
    pointers: &mut Pointers,
) -> Option<(Kernels, usize)> {
    let [one] = &code.instructions[..] else { return None };
    if matches!(code.result, From::Leaf(_)) {
        return None;
    }
    let mut repeated = 0;
    for (k, (from, place)) in one.args.iter().zip(&mut *pointers).enumerate() {
        let (pointer, repeats) = match from {
            From::Leaf(leaf) => (ins[leaf], repeated_leaves >> leaf & 1),
            From::Constant(constant) => ((&raw const code.constants[constant]).cast(), 1),
            From::Made(_) => (std::ptr::null(), 0),
        };
        *place = pointer;
        repeated |= repeats << k;
    }
    (repeated + 1 < 1 << one.args.count).then_some((one.kernels, repeated))
}

/// The first operand of [`lone`] code that is one of some leaves, a bit for each.
#[inline(always)]
fn first_of(code: &Code, leaves: usize) -> Option<usize> {
    let mut args = code.instructions.first()?.args.iter();
    args.position(|from| matches!(from, From::Leaf(leaf) if leaves >> leaf & 1 == 1))
}

/// Counts operations that come next; now and then, unwinds where the call is to stop.
#[inline]
pub(super) fn count(unasked: &mut usize, operations: usize) {
    *unasked += operations;
    if *unasked > UNASKED_OPERATIONS {
        *unasked = 0;
        checkpoint();
    }
}

impl Interpreter<'_> {
    /// A long run of [`lone`] code, which may be stopped between pieces.
    ///
    /// # Safety
    ///
    /// The invariant of this module; the pattern says which operands repeat.
    #[cold]
    unsafe fn pieces(
        &mut self,
        kernels: &Kernels,
        out: *mut u8,
        mut pointers: Pointers,
        repeated: usize,
        len: usize,
    ) {
        let code = self.code;
        let args = &code.instructions[0].args.from;
        let size = |k: usize| match args[k] {
            From::Leaf(leaf) if repeated >> k & 1 == 0 => code.sizes[leaf + 1],
            _ => 0,
        };
        for done in (0..len).step_by(UNASKED_OPERATIONS) {
            let part = UNASKED_OPERATIONS.min(len - done);
            count(&mut self.unasked, part);
            let to = out.wrapping_add(done * code.sizes[0]);
            // SAFETY: the pointers move within the run.
            unsafe { (kernels.cached)(to, &pointers, repeated, part) };
            for (k, pointer) in pointers.iter_mut().enumerate() {
                *pointer = pointer.wrapping_add(size(k) * part);
            }
        }
    }

    /// A run with non-temporal stores.
    ///
    /// # Safety
    ///
    /// As [`InnerLoop::contiguous`].
    unsafe fn nontemporal(&mut self, run: &Run<'_>) {
        let Run { out, ins, len, .. } = *run;
        let (code, repeated_leaves, prefetch) =
            (self.code, run.repeated as usize, run.prefetch as usize);
        if let Some(chain) = &code.chain {
            let bindings = &mut self.bindings.get_or_insert_with(Bindings::spare).chain;
            // SAFETY: the caller keeps the invariant; the code has as many leaves as the chain.
            return unsafe {
                chain::run(chain, bindings, out, ins, repeated_leaves, len, prefetch);
            };
        }
        let mut pointers = [std::ptr::null(); 3];
        if let Some((Kernels { nontemporal: Some(kernel), .. }, repeated)) =
            lone(code, ins, repeated_leaves, &mut pointers)
        {
            // SAFETY: as above.
            return unsafe { kernel(out, &pointers, repeated, len, first_of(code, prefetch)) };
        }
        let size = code.dtype.size();
        let whole = NONTEMPORAL_PIECE_BYTES / size;
        // The first results end at a cache line, so that all others are aligned to cache lines.
        let mut count = whole - out.addr() % CACHE_LINE_BYTES / size;
        let mut done = 0;
        while done < len {
            count = nontemporal::chunk_len(len - done, count);
            let mut at = [std::ptr::null(); MAX_OPERANDS];
            for (n, (place, &from)) in at.iter_mut().zip(ins).enumerate() {
                let step = if repeated_leaves >> n & 1 == 1 { 0 } else { code.sizes[n + 1] };
                *place = from.wrapping_add(done * step);
            }
            let (out, ins) = (out.wrapping_add(done * size), &at[..ins.len()]);
            // SAFETY: as above, for `count` results from there on.
            unsafe { self.execute(&Run { out, ins, len: count, ..*run }) };
            done += count;
            count = whole;
        }
    }

    /// Code over a run. With non-temporal stores, leaves are prefetched beside each loop.
    ///
    /// # Safety
    ///
    /// The invariant of this module. Non-temporal stores need a fence.
    #[inline(never)]
    unsafe fn execute(&mut self, run: &Run<'_>) {
        let Run { out, ins, len, .. } = *run;
        let (code, nontemporal) = (self.code, run.stores == Stores::NonTemporal);
        let (repeated_leaves, ask) = (run.repeated as usize, run.prefetch as usize);
        if !nontemporal
            && let Some(chain) = &code.chain
            && code.instructions.len() == CACHED_CHAIN_STEPS
            && chain.pays_in_cache()
            && len * code.dtype.size() >= chain.block()
        {
            let bindings = &mut self.bindings.get_or_insert_with(Bindings::spare).chain;
            // SAFETY: the caller keeps the invariant.
            return unsafe { chain::run_cached(chain, bindings, out, ins, repeated_leaves, len) };
        }
        let bindings = self.bindings.get_or_insert_with(Bindings::spare);
        if bindings.bound != Some((repeated_leaves, nontemporal)) {
            bindings.bind(code, repeated_leaves, nontemporal);
        }
        let Bindings { once, once_slots, active, slots, whole, unasked, .. } = &mut **bindings;
        for slot in &*once_slots {
            once[slot.instruction].ins[slot.arg] = ins[slot.leaf];
        }
        for one in &*once {
            // SAFETY: one element of each operand; a value of any type fits in its place.
            unsafe { (one.kernels.cached)(one.out, &one.ins, 0, 1) };
        }
        if let Some((from, pointer, repeats)) = *whole {
            let pointer = if let From::Leaf(leaf) = from { ins[leaf] } else { pointer };
            // SAFETY: one element, or `len` of them, of the result's size.
            unsafe {
                pack::<false>(code.dtype.size(), out, pointer, &[(len, isize::from(!repeats))]);
            };
            return;
        }
        for slot in &*slots {
            active[slot.instruction].ins[slot.arg] = ins[slot.leaf];
        }
        if let Some(last) = active.last_mut() {
            last.out = out;
        }
        // Every loop of a tile prefetches the same share: a division for each would cost as much as it saves.
        let tile = code.tile.min(len);
        let (mut done, each) = (0, if ask == 0 { 0 } else { tile.div_ceil(active.len().max(1)) });
        while done < len {
            let part = tile.min(len - done);
            count(unasked, part * active.len());
            let mut asked = 0;
            for one in &mut *active {
                if asked < part && ask != 0 {
                    let upto = (asked + each).min(part);
                    prefetch::prefetch_operands(
                        ask,
                        ins,
                        code.leaf_sizes(),
                        done + asked..done + upto,
                    );
                    asked = upto;
                }
                // SAFETY: a tile fits in its register; leaves and output advance by what is done,
                // within the run.
                unsafe { one.kernels.run(one.nontemporal, one.out, &one.ins, one.repeated, part) };
                one.out = one.out.wrapping_add(one.out_step * part);
                for (pointer, step) in one.ins.iter_mut().zip(one.steps) {
                    *pointer = pointer.wrapping_add(step * part);
                }
            }
            done += part;
        }
    }
}
