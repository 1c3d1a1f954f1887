//! Code: a part of a graph as a list of loops over tiles.
//!
//! ```text
//! leaves        arrays that are read, at most 16; a stage of its own makes what needs more
//! constants     repeat everywhere
//! instructions  one kernel each, into a register; the last one into the output
//! registers     tiles in the first-level cache; one is free again after its last use
//! ```
//!
//! `float16` and `bfloat16` are widened as they are read, computed in `float32`, and rounded once,
//! as they are written.

use super::build::widened;
use super::graph::Bytes;
use crate::dtype::DType;
use crate::kernels::{self, Kernel};
use crate::level::Level;
use crate::op::Op;

/// The most arrays that one piece of code reads.
pub(crate) const LEAVES: usize = 16;

/// The bytes of all registers: half of a first-level cache, the rest of which the leaves use.
pub(crate) const ROOM: usize = 16384;

/// A step without axes or text: what code is made of.
#[derive(Clone, Debug)]
pub(crate) enum Flat {
    Leaf(usize),
    Constant(Bytes),
    Apply(Op, DType, [usize; 3]),
    Cast(usize),
}

/// Where an instruction reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    Leaf(usize),
    Constant(usize),
    /// What an earlier instruction made.
    Made(usize),
}

/// A loop: its kernels for each pattern of repeated operands.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) kernels: Kernels,
    pub(crate) args: Args,
    /// The register that it writes, and the bytes of an element there.
    pub(crate) register: usize,
    pub(crate) size: usize,
}

/// The loops of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernels {
    /// For each pattern of repeated operands.
    Table(&'static [Kernel]),
    /// For all.
    One(Kernel),
}

impl Kernels {
    /// The loop for a pattern; there is one for every pattern, by the contract of the tables.
    #[inline]
    pub(crate) fn of(self, pattern: usize) -> Kernel {
        match self {
            Self::Table(table) => table[pattern],
            Self::One(kernel) => kernel,
        }
    }
}

/// One to three places to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args {
    pub(crate) from: [From; 3],
    pub(crate) count: usize,
}

impl Args {
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = From> {
        self.from.into_iter().take(self.count)
    }
}

/// Code for some leaves.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// The bytes of each leaf's elements.
    pub(crate) sizes: [usize; LEAVES],
    pub(crate) constants: Vec<Bytes>,
    pub(crate) instructions: Vec<Instruction>,
    /// The result: the last instruction, or no instruction at all.
    pub(crate) result: From,
    pub(crate) dtype: DType,
    /// How many registers there are, and how many elements each has room for.
    pub(crate) registers: usize,
    pub(crate) tile: usize,
    /// The bytes of a register.
    pub(crate) stride: usize,
}

/// Code under construction.
struct Making {
    level: Level,
    constants: Vec<Bytes>,
    instructions: Vec<Instruction>,
}

impl Making {
    fn emit(&mut self, kernels: Kernels, args: Args, size: usize) -> From {
        self.instructions.push(Instruction { kernels, args, register: 0, size });
        From::Made(self.instructions.len() - 1)
    }

    fn convert(&mut self, from: From, own: DType, to: DType) -> Option<From> {
        if own == to {
            return Some(from);
        }
        let kernels = Kernels::One(kernels::cast(own, to, self.level)?);
        Some(self.emit(kernels, Args { from: [from; 3], count: 1 }, to.size()))
    }
}

impl Code {
    /// The code of some steps, of which the last is the result; the result stays wide unless it is
    /// to be rounded. `None` where there is no kernel, which typing excludes.
    pub(crate) fn new(
        steps: &[(Flat, DType)],
        leaves: &[DType],
        narrow: bool,
        level: Level,
    ) -> Option<Self> {
        let mut making = Making { level, constants: Vec::new(), instructions: Vec::new() };
        // Where each step's value is, in the type that it is computed in.
        let mut places: Vec<From> = Vec::with_capacity(steps.len());
        for (at, &(ref step, dtype)) in steps.iter().enumerate() {
            let last = at + 1 == steps.len();
            let place = match *step {
                Flat::Leaf(_) if last && narrow => From::Leaf(leaf(step)),
                Flat::Leaf(leaf) => making.convert(From::Leaf(leaf), dtype, widened(dtype))?,
                Flat::Constant(bytes) => {
                    making.constants.push(bytes);
                    let place = From::Constant(making.constants.len() - 1);
                    making.convert(place, dtype, widened(dtype))?
                }
                Flat::Cast(from) => {
                    let own = widened(steps.get(from)?.1);
                    // Rounded to the type itself, then widened again.
                    let rounded = making.convert(*places.get(from)?, own, dtype)?;
                    if last && narrow {
                        rounded
                    } else {
                        making.convert(rounded, dtype, widened(dtype))?
                    }
                }
                Flat::Apply(op, compute, args) => {
                    let wide = widened(compute);
                    let kernels = Kernels::Table(kernels::kernels(op, wide, level)?);
                    let mut from = [From::Leaf(0); 3];
                    for (from, arg) in from.iter_mut().zip(args).take(op.arity()) {
                        *from = *places.get(arg)?;
                    }
                    let made = kernels::result_of(op, wide);
                    let place = making.emit(kernels, Args { from, count: op.arity() }, made.size());
                    if last && narrow { making.convert(place, made, dtype)? } else { place }
                }
            };
            places.push(place);
        }
        let result = *places.last()?;
        let dtype = steps.last()?.1;
        let dtype = if narrow { dtype } else { widened(dtype) };
        // A constant of a half type that is the whole program was widened above.
        let result = match (steps.last()?, result) {
            ((Flat::Constant(_), own), place) if narrow => {
                making.convert(place, widened(*own), *own)?
            }
            _ => result,
        };
        let mut sizes = [1; LEAVES];
        for (size, leaf) in sizes.iter_mut().zip(leaves) {
            *size = leaf.size();
        }
        let Making { constants, instructions, .. } = making;
        let mut code = Self {
            sizes,
            constants,
            instructions,
            result,
            dtype,
            registers: 0,
            tile: 0,
            stride: 0,
        };
        code.allocate();
        Some(code)
    }

    /// Gives every instruction a register that nobody needs any more.
    fn allocate(&mut self) {
        let count = self.instructions.len();
        let mut last_use: Vec<usize> = (0..count).collect();
        for (at, one) in self.instructions.iter().enumerate() {
            for from in one.args.iter() {
                if let From::Made(made) = from {
                    last_use[made] = at;
                }
            }
        }
        let mut free: Vec<usize> = Vec::new();
        for at in 0..count {
            let register = free.pop().unwrap_or_else(|| {
                self.registers += 1;
                self.registers - 1
            });
            self.instructions[at].register = register;
            // Freed after the instruction wrote: a kernel never writes where it reads.
            let args = self.instructions[at].args;
            let mut freed: Vec<usize> = Vec::new();
            for from in args.iter() {
                if let From::Made(made) = from
                    && last_use[made] == at
                {
                    freed.push(self.instructions[made].register);
                }
            }
            freed.sort_unstable();
            freed.dedup();
            free.extend(freed);
        }
        let widest = self.instructions.iter().map(|one| one.size).max().unwrap_or(1);
        let whole = ROOM / (self.registers.max(1) * widest);
        self.tile = (whole / 64 * 64).clamp(256, 4096);
        self.stride = self.tile * widest;
    }
}

fn leaf(step: &Flat) -> usize {
    match *step {
        Flat::Leaf(leaf) => leaf,
        _ => 0,
    }
}
