//! Code with several results over a piece of a pass: every instruction once, in registers in the first-level cache.
//!
//! Invariant: the operands of a piece are of the types that the code reads, and have as many elements as the piece, or one
//! where they are repeated; a piece has no more elements than there is room for.

use crate::by_name::program::build::bytecode::{From, Several};
use crate::by_name::program::run::interpreter::count;
use simulcast_kernels::cpu::aligned_buf::{CacheLine, cache_lines};
use simulcast_kernels::moves;
use simulcast_kernels::ops::Kernel;
use simulcast_kernels::tuning::CACHE_LINE_BYTES;

/// An instruction with its pointers.
struct Active {
    kernel: Kernel,
    repeated: usize,
    out: *mut u8,
    ins: [*const u8; 3],
}

/// Which argument of which active instruction is an operand.
struct Slot {
    active: usize,
    arg: usize,
    leaf: usize,
}

/// Where a result is.
#[derive(Clone, Copy)]
enum Held {
    Leaf(usize),
    /// One value, for all elements; and the room to repeat it in.
    Once(*const u8, *mut u8),
    /// One value of an operand, likewise.
    LeafOnce(usize, *mut u8),
    Made(*mut u8, Option<usize>),
}

/// Code that is bound to its registers, for one pattern of repeated operands.
pub(super) struct Machine {
    once: Vec<Active>,
    once_slots: Vec<Slot>,
    each: Vec<Active>,
    slots: Vec<Slot>,
    held: Vec<Held>,
    sizes: Vec<usize>,
    /// Operations since it was asked whether to stop.
    unasked: usize,
    /// What the pointers point to.
    _registers: Vec<CacheLine>,
    _scalars: Vec<[u64; 2]>,
}

impl Machine {
    /// The machine for pieces of at most `room` elements. Results that are `direct` are written where each piece says, if
    /// no other step reads them.
    pub(super) fn new(code: &Several, repeats: &[bool], room: usize, direct: &[bool]) -> Self {
        let line = CACHE_LINE_BYTES;
        let widest = code.results.iter().map(|(_, dtype)| dtype.size()).chain([code.widest]);
        // A cache line apart, so that the same element of all registers does not map to one set of the cache.
        let stride = (room * widest.max().unwrap_or(16)).div_ceil(line) * line + line;
        // A register for each result that is repeated.
        let mut registers = cache_lines((code.registers + code.results.len()) * stride);
        let first: *mut u8 = registers.as_mut_ptr().cast();
        let register = |number: usize| first.wrapping_add(number * stride);
        let mut scalars = vec![[0_u64; 2]; code.instructions.len() + code.constants.len()];
        let scalar: *mut [u64; 2] = scalars.as_mut_ptr();
        let scalar = |number: usize| scalar.wrapping_add(number).cast::<u8>();
        let constants = code.instructions.len();
        for (number, bytes) in code.constants.iter().enumerate() {
            // SAFETY: there is a place of 16 bytes for each constant.
            unsafe { scalar(constants + number).copy_from(bytes.0.as_ptr(), bytes.0.len()) };
        }
        let mut alone = vec![false; code.instructions.len()];
        let (mut once, mut once_slots) = (Vec::new(), Vec::new());
        let (mut each, mut slots): (Vec<Active>, Vec<Slot>) = (Vec::new(), Vec::new());
        // The active instruction of each one that is not repeated, and whether another one reads it.
        let mut place = vec![None; code.instructions.len()];
        let mut read = vec![false; code.instructions.len()];
        for (at, one) in code.instructions.iter().enumerate() {
            let (mut ins, mut repeated) = ([std::ptr::null(); 3], 0);
            for (k, from) in one.args.iter().enumerate() {
                let repeats = match from {
                    From::Leaf(leaf) => repeats.get(leaf) == Some(&true),
                    From::Constant(number) => {
                        ins[k] = scalar(constants + number).cast_const();
                        true
                    }
                    From::Made(made) if alone[made] => {
                        ins[k] = scalar(made).cast_const();
                        true
                    }
                    From::Made(made) => {
                        ins[k] = register(code.instructions[made].register).cast_const();
                        read[made] = true;
                        false
                    }
                };
                repeated |= usize::from(repeats) << k;
            }
            alone[at] = repeated + 1 == 1 << one.args.count;
            let (list, slots, out) = match alone[at] {
                true => (&mut once, &mut once_slots, scalar(at)),
                false => {
                    place[at] = Some(each.len());
                    (&mut each, &mut slots, register(one.register))
                }
            };
            for (arg, from) in one.args.iter().enumerate() {
                if let From::Leaf(leaf) = from {
                    slots.push(Slot { active: list.len(), arg, leaf });
                }
            }
            let repeated = if alone[at] { 0 } else { repeated };
            list.push(Active { kernel: one.kernels.cached, repeated, out, ins });
        }
        let results = code.results.iter().enumerate();
        let held = results.map(|(n, &(from, _))| {
            let room = register(code.registers + n);
            match from {
                From::Leaf(leaf) if repeats.get(leaf) == Some(&true) => Held::LeafOnce(leaf, room),
                From::Leaf(leaf) => Held::Leaf(leaf),
                From::Constant(number) => Held::Once(scalar(constants + number), room),
                From::Made(made) if alone[made] => Held::Once(scalar(made), room),
                From::Made(made) => {
                    // Written once, by one instruction, for one result.
                    let others = code.results.iter().filter(|(other, _)| *other == from).count();
                    let own = direct.get(n) == Some(&true) && !read[made] && others == 1;
                    Held::Made(
                        register(code.instructions[made].register),
                        place[made].filter(|_| own),
                    )
                }
            }
        });
        let held = held.collect();
        let sizes = code.results.iter().map(|(_, dtype)| dtype.size()).collect();
        Self {
            once,
            once_slots,
            each,
            slots,
            held,
            sizes,
            unasked: 0,
            _registers: registers,
            _scalars: scalars,
        }
    }

    /// Whether a result is written where a piece says.
    pub(super) fn is_direct(&self, result: usize) -> bool {
        matches!(self.held.get(result), Some(Held::Made(_, Some(_))))
    }

    /// Says where a [direct](Self::is_direct) result is written.
    pub(super) fn direct(&mut self, result: usize, to: *mut u8) {
        if let Some(Held::Made(_, Some(active))) = self.held.get(result) {
            self.each[*active].out = to;
        }
    }

    /// Computes a piece.
    ///
    /// # Safety
    ///
    /// The invariant of this module.
    #[inline]
    pub(super) unsafe fn run(&mut self, ins: &[*const u8], len: usize) {
        count(&mut self.unasked, len * self.each.len());
        for slot in &self.once_slots {
            self.once[slot.active].ins[slot.arg] = ins[slot.leaf];
        }
        for slot in &self.slots {
            self.each[slot.active].ins[slot.arg] = ins[slot.leaf];
        }
        for one in &self.once {
            // SAFETY: one element of each operand; a value of any type fits in its place.
            unsafe { (one.kernel)(one.out, &one.ins, 0, 1) };
        }
        for one in &self.each {
            // SAFETY: a register has room for a piece, and operands have as many elements or one, as the pattern says.
            unsafe { (one.kernel)(one.out, &one.ins, one.repeated, len) };
        }
    }

    /// The values of a result for the piece that was computed last, one after the other.
    ///
    /// # Safety
    ///
    /// As [`Self::run`], with the same operands.
    #[inline]
    pub(super) unsafe fn values(&self, result: usize, ins: &[*const u8], len: usize) -> *const u8 {
        let (one, room) = match self.held[result] {
            Held::Leaf(leaf) => return ins[leaf],
            Held::Made(register, _) => return register,
            Held::Once(one, room) => (one, room),
            Held::LeafOnce(leaf, room) => (ins[leaf], room),
        };
        // SAFETY: one value, and a register of its own with room for a piece.
        unsafe { moves::repeat(self.sizes[result], room, one, len) };
        room
    }
}
