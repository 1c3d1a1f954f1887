//! Code: a part of a graph as a list of loops over tiles.
//!
//! ```text
//! leaves        arrays that are read, at most 16; a stage of its own makes what needs more
//! constants     repeat everywhere
//! instructions  one kernel each, into a register; the last one into the output
//! registers     tiles in the first-level cache; one is free again after its last use
//! ```
//!
//! If a step's value is read by the next step only, and there is a loop for the pair (`simulcast_kernels::ops::fused_pairs`),
//! both are one instruction.
//! `float16` and `bfloat16` are widened as they are read, computed in `float32`, and rounded once, as they are written;
//! one step on them alone has a loop that does all of it. A `bool` leaf may hold any non-zero byte for true. Kernels that
//! only test it accept that; everything else reads a copy normalised to 0 and 1.

use crate::by_name::program::build::builder::widened;
use crate::by_name::program::build::chain::Chain;
use crate::by_name::program::build::graph::Bytes;
use crate::exec::inner_loop::MAX_OPERANDS;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;
use simulcast_kernels::ops::{self, Conversion, Kernels};
use simulcast_kernels::tuning::{
    PREFETCH_LOOPS, REGISTER_BYTES, REGISTER_ELEMENTS, REGISTER_STEP_ELEMENTS,
};

/// The most arrays that one piece of code reads.
pub(crate) const LEAVES: usize = MAX_OPERANDS;

/// A step without axes or text: what code is made of.
#[derive(Clone, Debug)]
pub(crate) enum Flat {
    Leaf(usize),
    Constant(Bytes),
    Apply(Op, DType, [usize; 3]),
    Cast(usize),
}

/// Where an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Leaf(usize),
    Constant(usize),
    /// What an earlier instruction made.
    Made(usize),
}

/// A loop: its kernels, what it reads and where it writes.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) kernels: Kernels,
    pub(crate) args: Args,
    /// The register that it writes, and the bytes of an element there.
    pub(crate) register: usize,
    pub(crate) size: usize,
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

/// Which argument of which instruction is a leaf.
#[derive(Clone, Copy)]
pub(in crate::by_name::program) struct Slot {
    pub(in crate::by_name::program) instruction: usize,
    pub(in crate::by_name::program) arg: usize,
    pub(in crate::by_name::program) leaf: usize,
}

/// Code for some leaves.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// The bytes of an element of the result and of each leaf.
    pub(crate) sizes: [usize; LEAVES + 1],
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
    /// Whether it is one compute-bound loop.
    pub(crate) compute_bound: bool,
    /// Whether memory is prefetched beside its loops, whatever the processor.
    pub(crate) prefetches: bool,
    /// Whether the last loop has non-temporal stores.
    pub(crate) has_nontemporal: bool,
    /// The whole code as one loop of the register machine, where it would be several loops or a compute-bound one.
    pub(in crate::by_name::program) chain: Option<Chain>,
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
        let one = |from| Args { from: [from; 3], count: 1 };
        Some(match ops::cast(own, to, self.level)? {
            Conversion::Direct(kernel) => self.emit(Kernels::of(kernel), one(from), to.size()),
            Conversion::Via { first, hub, second } => {
                let between = self.emit(Kernels::of(first), one(from), hub.size());
                self.emit(Kernels::of(second), one(between), to.size())
            }
        })
    }

    /// Booleans normalised to 0 and 1, since a `bool` leaf may hold other bytes; every other value as it is.
    fn settled(&mut self, from: From, dtype: DType) -> Option<From> {
        if dtype != DType::Bool || !matches!(from, From::Leaf(_)) {
            return Some(from);
        }
        let kernels = ops::kernels(Op::Absolute, dtype, self.level)?;
        Some(self.emit(kernels, Args { from: [from; 3], count: 1 }, dtype.size()))
    }

    /// Code for every step; where each value is, in the type that it is computed in. The last one is rounded to its own
    /// type if it is to be `narrow`.
    fn places(
        &mut self,
        steps: &[(Flat, DType)],
        fusions: &[Fusion],
        narrow: bool,
    ) -> Option<Vec<From>> {
        let mut places: Vec<From> = Vec::with_capacity(steps.len());
        for (at, &(ref step, dtype)) in steps.iter().enumerate() {
            let last = at + 1 == steps.len();
            let place = match *step {
                Flat::Leaf(leaf) if last && narrow => self.settled(From::Leaf(leaf), dtype)?,
                Flat::Leaf(leaf) => self.convert(From::Leaf(leaf), dtype, widened(dtype))?,
                Flat::Constant(bytes) => {
                    self.constants.push(bytes);
                    let place = From::Constant(self.constants.len() - 1);
                    self.convert(place, dtype, widened(dtype))?
                }
                Flat::Cast(from) => {
                    let own = widened(steps.get(from)?.1);
                    let from = self.settled(*places.get(from)?, own)?;
                    // Rounded to the type itself, then widened again.
                    let rounded = self.convert(from, own, dtype)?;
                    if last && narrow {
                        rounded
                    } else {
                        self.convert(rounded, dtype, widened(dtype))?
                    }
                }
                Flat::Apply(op, compute, args) => {
                    let wide = widened(compute);
                    let (op, args) = match ops::swapped(op) {
                        Some(op) => (op, [args[1], args[0], args[2]]),
                        None => (op, args),
                    };
                    let (kernels, args, count) = match fusions[at] {
                        // Never read: the step that follows reads its operands.
                        Fusion::First => {
                            places.push(From::Leaf(0));
                            continue;
                        }
                        Fusion::Both(table, args, count) => (table, args, count),
                        Fusion::Alone => (ops::kernels(op, wide, self.level)?, args, op.arity()),
                    };
                    let mut from = [From::Leaf(0); 3];
                    for (place, (from, arg)) in from.iter_mut().zip(args).take(count).enumerate() {
                        *from = *places.get(arg)?;
                        if op == Op::Where && place > 0 {
                            *from = self.settled(*from, wide)?;
                        }
                    }
                    let made = ops::result_of(op, wide);
                    let place = self.emit(kernels, Args { from, count }, made.size());
                    if last && narrow { self.convert(place, made, dtype)? } else { place }
                }
            };
            places.push(place);
        }
        Some(places)
    }

    /// One operation on halves that are leaves or constants, where there are loops for it.
    fn on_halves(&mut self, steps: &[(Flat, DType)]) -> Option<From> {
        let (&(Flat::Apply(op, compute, args), dtype), before) = steps.split_last()? else {
            return None;
        };
        let given = |(step, own): &(Flat, DType)| {
            matches!(step, Flat::Leaf(_) | Flat::Constant(_)) && *own == compute
        };
        if dtype != compute || !before.iter().all(given) {
            return None;
        }
        let kernels = ops::half(op, compute, self.level)?;
        let mut from = [From::Leaf(0); 3];
        for (from, arg) in from.iter_mut().zip(args).take(op.arity()) {
            *from = match before.get(arg)?.0 {
                Flat::Constant(bytes) => {
                    self.constants.push(bytes);
                    From::Constant(self.constants.len() - 1)
                }
                ref step => From::Leaf(leaf(step)),
            };
        }
        Some(self.emit(kernels, Args { from, count: op.arity() }, dtype.size()))
    }
}

/// How a step is done.
#[derive(Clone, Copy)]
enum Fusion {
    Alone,
    /// By the step that reads it.
    First,
    /// With the step that it reads: the loops for both, and what they read.
    Both(Kernels, [usize; 3], usize),
}

/// A comparison of two values that chooses between the same two, as one of `where(a < b, a, b)`, with
/// `a` and `b` in their places.
fn choice(comparison: Op, [a, b, _]: [usize; 3], chosen: &[usize]) -> Option<(Op, [usize; 3])> {
    if *chosen == [a, b] {
        return Some((comparison, [a, b, 0]));
    }
    let turned = match comparison {
        Op::Less => Op::Greater,
        Op::LessEqual => Op::GreaterEqual,
        Op::Greater => Op::Less,
        Op::GreaterEqual => Op::LessEqual,
        _ => return None,
    };
    (*chosen == [b, a]).then_some((turned, [b, a, 0]))
}

/// How each step is done; the values of some are `kept` for later readers.
fn fusions(steps: &[(Flat, DType)], kept: &[usize], level: Level) -> Vec<Fusion> {
    let mut readers = vec![0_usize; steps.len()];
    kept.iter().for_each(|&at| readers[at] += 2);
    for (step, _) in steps {
        match *step {
            Flat::Apply(op, _, args) => {
                args.into_iter().take(op.arity()).for_each(|arg| readers[arg] += 1);
            }
            Flat::Cast(from) => readers[from] += 1,
            Flat::Leaf(_) | Flat::Constant(_) => {}
        }
    }
    let mut fusions = vec![Fusion::Alone; steps.len()];
    for (at, (step, _)) in steps.iter().enumerate() {
        let Flat::Apply(second, compute, args) = *step else { continue };
        let wide = widened(compute);
        for (place, arg) in args.into_iter().take(second.arity()).enumerate() {
            let Flat::Apply(first, own, inner) = steps[arg].0 else { continue };
            if readers[arg] != 1 || widened(own) != wide || !matches!(fusions[arg], Fusion::Alone) {
                continue;
            }
            let both = if second == Op::Where {
                choice(first, inner, &args[1..]).and_then(|(first, all)| {
                    Some(Fusion::Both(ops::choice_by(first, wide, level)?, all, 2))
                })
            } else {
                ops::pair(first, second, place, wide, level).map(|table| {
                    let mut all = inner;
                    if second.arity() == 2 {
                        all[2] = args[1 - place];
                    }
                    Fusion::Both(table, all, first.arity() + second.arity() - 1)
                })
            };
            if let Some(both) = both {
                fusions[arg] = Fusion::First;
                fusions[at] = both;
                break;
            }
        }
    }
    fusions
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
        if narrow && let Some(result) = making.on_halves(steps) {
            return Some(Self::of(making, result, steps.last()?.1, leaves));
        }
        let places = making.places(steps, &fusions(steps, &[], level), narrow)?;
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
        let mut code = Self::of(making, result, dtype, leaves);
        // A single instruction with non-temporal stores of its own needs no chain.
        if code.instructions.len() > 1 || !code.has_nontemporal {
            code.chain = Chain::new(steps, leaves.len(), level);
            code.compute_bound &= code.chain.is_none();
            code.prefetches |= code.chain.is_some();
        }
        Some(code)
    }

    fn of(making: Making, result: From, dtype: DType, leaves: &[DType]) -> Self {
        let mut sizes = [1; LEAVES + 1];
        for (size, array) in sizes.iter_mut().zip([dtype].iter().chain(leaves)) {
            *size = array.size();
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
            compute_bound: false,
            prefetches: false,
            has_nontemporal: false,
            chain: None,
        };
        (code.compute_bound, code.prefetches) = match &code.instructions[..] {
            [one] => (one.kernels.compute_bound, one.kernels.prefetches),
            all => (false, all.len() >= PREFETCH_LOOPS),
        };
        let last = code.instructions.last();
        code.has_nontemporal = last.is_some_and(|one| one.kernels.nontemporal.is_some())
            && matches!(code.result, From::Made(_));
        code.allocate();
        code
    }

    /// The bytes of each leaf's elements.
    pub(crate) fn leaf_sizes(&self) -> &[usize] {
        &self.sizes[1..]
    }

    /// Register allocation: every instruction gets a register that no later instruction reads.
    fn allocate(&mut self) {
        self.registers = allocate(&mut self.instructions, &[]);
        let widest = self.instructions.iter().map(|one| one.size).max().unwrap_or(1);
        self.tile = register_elements(self.registers, widest);
        self.stride = self.tile * widest;
    }
}

/// The elements of a register, of so many that are used at once, of values of at most so many bytes.
pub(crate) fn register_elements(registers: usize, widest: usize) -> usize {
    let whole = REGISTER_BYTES / (registers.max(1) * widest.max(1));
    let vectors = whole / REGISTER_STEP_ELEMENTS * REGISTER_STEP_ELEMENTS;
    vectors.clamp(*REGISTER_ELEMENTS.start(), *REGISTER_ELEMENTS.end())
}

/// Code with several results.
#[derive(Clone, Debug)]
pub(crate) struct Several {
    pub(crate) constants: Vec<Bytes>,
    pub(crate) instructions: Vec<Instruction>,
    /// Where each result is, and its type.
    pub(crate) results: Vec<(From, DType)>,
    /// How many registers there are. That of a result is not used again.
    pub(crate) registers: usize,
    /// The bytes of the widest value in a register.
    pub(crate) widest: usize,
}

impl Several {
    /// The code of some steps, of which some are results, each converted to the type that is said. `None` where there is no
    /// kernel, which typing excludes.
    pub(crate) fn new(
        steps: &[(Flat, DType)],
        results: &[(usize, DType)],
        level: Level,
    ) -> Option<Self> {
        let mut making = Making { level, constants: Vec::new(), instructions: Vec::new() };
        let kept: Vec<usize> = results.iter().map(|&(at, _)| at).collect();
        let places = making.places(steps, &fusions(steps, &kept, level), false)?;
        let mut made = Vec::with_capacity(results.len());
        for &(at, dtype) in results {
            let (own, place) = (widened(steps.get(at)?.1), *places.get(at)?);
            let place = making.settled(place, own)?;
            made.push((making.convert(place, own, dtype)?, dtype));
        }
        let Making { constants, instructions, .. } = making;
        let widest = instructions.iter().map(|one| one.size).max().unwrap_or(1);
        let mut code = Self { constants, instructions, results: made, registers: 0, widest };
        code.registers = allocate(&mut code.instructions, &code.results);
        Some(code)
    }
}

/// Register allocation: every instruction gets a register that no later one reads; registers of `kept` values are not
/// reused. Returns the number of registers.
fn allocate(instructions: &mut [Instruction], kept: &[(From, DType)]) -> usize {
    let mut last_use: Vec<usize> = (0..instructions.len()).collect();
    for (at, one) in instructions.iter().enumerate() {
        for from in one.args.iter() {
            if let From::Made(made) = from {
                last_use[made] = at;
            }
        }
    }
    for (from, _) in kept {
        if let From::Made(made) = *from {
            last_use[made] = usize::MAX;
        }
    }
    let (mut registers, mut free) = (0, Vec::new());
    for at in 0..instructions.len() {
        instructions[at].register = free.pop().unwrap_or_else(|| {
            registers += 1;
            registers - 1
        });
        // Freed after the instruction wrote: a kernel never writes where it reads.
        let mut freed: Vec<usize> = Vec::new();
        for from in instructions[at].args.iter() {
            if let From::Made(made) = from
                && last_use[made] == at
            {
                freed.push(instructions[made].register);
            }
        }
        freed.sort_unstable();
        freed.dedup();
        free.extend(freed);
    }
    registers
}

fn leaf(step: &Flat) -> usize {
    match *step {
        Flat::Leaf(leaf) => leaf,
        _ => 0,
    }
}
