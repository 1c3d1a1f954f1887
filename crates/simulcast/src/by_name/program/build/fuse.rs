//! Chains: code that is many light steps, or some functions, on `float32` or `float64`, as one loop.
//!
//! ```text
//! (a - b) / c * d + e      load a, less b, over c, times d, plus e
//! a * b + c * d            load a, times b, store 0, load c, times d, plus 0
//! where(a > b, a, b) * c   load a, greater than b, choose a or b, times c
//! ```
//!
//! A value that the next step alone reads stays in the accumulator; every other one is stored in registers while there
//! are any, or in a block of its own, in the first-level cache. What repeats along a run fills a block, and steps that read nothing else
//! are done once for it.
//!
//! It is for results that go past the caches: then the loop waits for memory, and memory for nothing. Loops for
//! each step, of which the compiler knows more, are ahead where all is in a cache.
//!
//! Invariant: as in [`crate::by_name::program::run::interpreter`].

use std::cell::Cell;

use crate::by_name::program::build::bytecode::{Args, Flat, From, LEAVES, Slot};
use crate::by_name::program::build::graph::Bytes;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::cpu::nontemporal::{self, Strip};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::ops::{self};
use simulcast_kernels::register_vm::{Act, BLOCK, Bank, Chains, Place, Step};

/// The most values, and the most leaves and constants: so many blocks are a part of a first-level cache.
const MOST: usize = 24;

/// What a step does; the first argument is the accumulator's, where nothing is turned.
#[derive(Clone, Copy, Debug)]
struct Apply {
    act: Act,
    args: Args,
    /// How often others read what it makes.
    readers: usize,
}

impl Apply {
    /// Whether it reads what another one made.
    fn reads(&self, made: usize) -> bool {
        self.args.iter().any(|from| from == From::Made(made))
    }
}

/// Steps, each after those that it reads; the last is the result.
#[derive(Clone, Debug)]
pub(in crate::by_name::program) struct Chain {
    applies: Vec<Apply>,
    constants: Vec<Bytes>,
    /// How many leaves there are.
    leaves: usize,
    /// The bytes of an element.
    size: usize,
    loops: Chains,
}

impl Chain {
    /// The steps as a chain; none where some step is of another type, or chains have none for it.
    pub(in crate::by_name::program) fn new(
        steps: &[(Flat, DType)],
        leaves: usize,
        level: Level,
    ) -> Option<Self> {
        let &(_, dtype) = steps.last()?;
        let mut places: Vec<(From, bool)> = Vec::with_capacity(steps.len());
        let (mut applies, mut constants): (Vec<Apply>, Vec<Bytes>) = (Vec::new(), Vec::new());
        for &(ref step, own) in steps {
            let place = match *step {
                Flat::Leaf(leaf) if own == dtype => From::Leaf(leaf),
                Flat::Constant(bytes) if own == dtype => {
                    constants.push(bytes);
                    From::Constant(constants.len() - 1)
                }
                Flat::Apply(op, compute, args)
                    if compute == dtype && own == ops::result_of(op, dtype) =>
                {
                    let act = Act::of(op)?;
                    let mut from = [From::Leaf(0); 3];
                    for (number, (from, arg)) in
                        from.iter_mut().zip(args).take(op.arity()).enumerate()
                    {
                        let (place, asked) = *places.get(arg)?;
                        // What is chosen by was asked, and nothing else was.
                        if asked != (act == Act::Choose && number == 0) {
                            return None;
                        }
                        if let From::Made(made) = place {
                            applies[made].readers += 1;
                        }
                        *from = place;
                    }
                    applies.push(Apply { act, args: Args { from, count: op.arity() }, readers: 0 });
                    From::Made(applies.len() - 1)
                }
                _ => return None,
            };
            places.push((place, own == DType::Bool));
        }
        let few = applies.len() <= MOST && constants.len() + leaves <= MOST;
        let last = matches!(places.last()?.0, From::Made(_));
        let loops = loops(dtype, level, &applies)?;
        (few && last).then_some(Self { applies, constants, leaves, size: dtype.size(), loops })
    }
}

/// The loops for steps of a type, where this machine has any.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn loops(dtype: DType, level: Level, applies: &[Apply]) -> Option<Chains> {
    use simulcast_kernels::cpu::level::Kind;
    use simulcast_kernels::register_vm::Registers;
    let functions = applies.iter().any(|apply| apply.act.is_function());
    let registers = match level.kind() {
        Kind::Baseline => return None,
        Kind::Avx2 if applies.iter().any(|apply| apply.act.is_long()) => Registers::Half,
        Kind::Avx2 => Registers::Short,
        Kind::Avx512 if !functions && waits(applies) => Registers::Banked,
        Kind::Avx512 => Registers::Long,
    };
    match dtype {
        DType::F32 => Some(simulcast_kernels::register_vm::chains(false, registers)),
        DType::F64 => Some(simulcast_kernels::register_vm::chains(true, registers)),
        _ => None,
    }
}

/// Whether some value is read more than once, or not by the next step.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn waits(applies: &[Apply]) -> bool {
    let waits = |(at, pair): (usize, &[Apply])| pair[0].readers > 1 || !pair[1].reads(at);
    applies.windows(2).enumerate().any(waits)
}

/// There are none elsewhere.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn loops(_: DType, _: Level, _: &[Apply]) -> Option<Chains> {
    None
}

/// A block of one value after the other.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; BLOCK]);

/// A chain with its pointers, for one pattern of leaves that repeat.
pub(in crate::by_name::program) struct Prepared {
    /// The pattern, once there is one.
    splat: Option<usize>,
    /// A block for each value, then for each leaf, then for each constant.
    blocks: Vec<Block>,
    /// The steps that repeat, and all others.
    once: Vec<Step>,
    each: Vec<Step>,
    /// The leaves that move, among those others.
    slots: Vec<Slot>,
    /// Whether each value repeats.
    repeats: Vec<bool>,
    /// The values in registers: each with its bank, and the last step that reads it.
    banked: Vec<(usize, Bank, usize)>,
}

impl Prepared {
    pub(in crate::by_name::program) const fn new() -> Self {
        Self {
            splat: None,
            blocks: Vec::new(),
            once: Vec::new(),
            each: Vec::new(),
            slots: Vec::new(),
            repeats: Vec::new(),
            banked: Vec::new(),
        }
    }

    /// Leaves its memory behind for the next one on this thread.
    pub(in crate::by_name::program) fn leave(&mut self) {
        if !self.blocks.is_empty() {
            let left = std::mem::replace(self, Self::new());
            // Where the thread is ending there is no place for it, and it is freed.
            let _freed = SPARE.try_with(|spare| spare.set(Some(left)));
        }
    }

    /// The block of a leaf.
    fn leaf(&mut self, chain: &Chain, leaf: usize) -> *mut u8 {
        self.block(chain.applies.len() + leaf)
    }

    /// The block of a constant.
    fn constant(&mut self, chain: &Chain, constant: usize) -> *mut u8 {
        self.block(chain.applies.len() + chain.leaves + constant)
    }

    fn block(&mut self, number: usize) -> *mut u8 {
        self.blocks.as_mut_ptr().wrapping_add(number).cast()
    }

    /// Prepares a chain for a pattern.
    #[inline(never)]
    fn prepare(&mut self, chain: &Chain, splat: usize) {
        let Chain { applies, constants, .. } = chain;
        if self.blocks.is_empty()
            && let Some(spare) = SPARE.take()
        {
            *self = spare;
        }
        self.splat = Some(splat);
        let count = applies.len() + chain.leaves + constants.len();
        if self.blocks.len() < count {
            self.blocks.resize(count, Block([0; BLOCK]));
        }
        for (number, bytes) in constants.iter().enumerate() {
            let block = self.constant(chain, number);
            // SAFETY: it is a block of the vector's.
            unsafe { (chain.loops.fill)(block, bytes.0.as_ptr()) };
        }
        self.repeats.clear();
        for apply in applies {
            let all = apply.args.iter().all(|from| match from {
                From::Leaf(leaf) => splat >> leaf & 1 == 1,
                From::Constant(_) => true,
                From::Made(made) => self.repeats[made],
            });
            self.repeats.push(all);
        }
        self.once.clear();
        self.each.clear();
        self.slots.clear();
        self.banked.clear();
        self.emit(chain, true);
        self.emit(chain, false);
        // A result that repeats was stored.
        if self.repeats.last() == Some(&true) {
            self.push(chain, Act::Load, &[From::Made(applies.len() - 1)], false);
        }
    }

    /// The steps that repeat, or all others.
    fn emit(&mut self, chain: &Chain, once: bool) {
        let mut accumulator = None;
        for (at, apply) in chain.applies.iter().enumerate() {
            if self.repeats[at] != once {
                continue;
            }
            let Args { from: [a, b, c], count } = apply.args;
            let has = |from: From| accumulator == Some(from);
            match (count, apply.act) {
                (3, _) if !has(a) && has(b) && b != c => self.push(chain, Act::Keep, &[a, c], once),
                (3, _) if !has(a) && has(c) && b != c => {
                    self.push(chain, Act::Replace, &[a, b], once);
                }
                (2, act) if !has(a) && has(b) => self.push(chain, act.turned(), &[a], once),
                (_, act) => {
                    if !has(a) {
                        self.push(chain, Act::Load, &[a], once);
                    }
                    self.push(chain, act, &apply.args.from[1..count], once);
                }
            }
            let made = From::Made(at);
            accumulator = Some(made);
            // The next step of these, if it is the only one that reads it, finds it in the accumulator.
            let next = (at + 1..chain.applies.len()).find(|&next| self.repeats[next] == once);
            let stays =
                apply.readers == 1 && next.is_some_and(|next| chain.applies[next].reads(at));
            let last = at + 1 == chain.applies.len() && !once;
            if !stays && !last {
                if !once {
                    self.bank(chain, at);
                }
                self.push(chain, Act::Store, &[made], once);
            }
        }
    }

    /// Takes a bank for a value that was just made, if one is free by now.
    fn bank(&mut self, chain: &Chain, made: usize) {
        self.banked.retain(|&(_, _, last)| last > made);
        let taken = |bank: &&Bank| self.banked.iter().any(|(_, held, _)| held == *bank);
        let free = chain.loops.banks.iter().find(|bank| !taken(bank));
        let last = chain.applies.iter().rposition(|apply| apply.reads(made));
        if let (Some(&bank), Some(last)) = (free, last) {
            self.banked.push((made, bank, last));
        }
    }

    /// Adds a step with its operands.
    fn push(&mut self, chain: &Chain, act: Act, operands: &[From], once: bool) {
        let splat = self.splat.unwrap_or(0);
        let instruction = if once { self.once.len() } else { self.each.len() };
        let mut places = [Place::NONE; 2];
        for (arg, (to, &from)) in places.iter_mut().zip(operands).enumerate() {
            match from {
                From::Leaf(leaf) if splat >> leaf & 1 == 0 => {
                    to.moves = true;
                    self.slots.push(Slot { instruction, arg, leaf });
                }
                From::Leaf(leaf) => to.pointer = self.leaf(chain, leaf),
                From::Constant(constant) => to.pointer = self.constant(chain, constant),
                From::Made(made) => match self.banked.iter().find(|(own, ..)| *own == made) {
                    Some(&(_, bank, _)) => to.bank = bank,
                    None => to.pointer = self.block(made),
                },
            }
        }
        let list = if once { &mut self.once } else { &mut self.each };
        list.push(Step { act, places });
    }
}

thread_local! {
    /// Memory that a chain left behind on this thread, for the next one.
    static SPARE: Cell<Option<Prepared>> = const { Cell::new(None) };
}

/// A chain over a run, with results that go past the caches, where the strip says: `splat` says which leaves repeat,
/// `far` which come from memory, a bit for each.
///
/// # Safety
///
/// The invariant of this module: `out` has room for `len` results, and every leaf has `len` elements, or one
/// where its bit of `splat` is set; results fit the strip, or it is none. A fence must follow.
pub(in crate::by_name::program) unsafe fn run(
    chain: &Chain,
    prepared: &mut Prepared,
    (out, strip): (*mut u8, &Strip),
    ins: &[*const u8],
    splat: usize,
    len: usize,
    far: usize,
) {
    if prepared.splat != Some(splat) {
        prepared.prepare(chain, splat);
    }
    let (loops, bytes) = (&chain.loops, len * chain.size);
    for (leaf, from) in ins.iter().enumerate().take(chain.leaves) {
        if splat >> leaf & 1 == 1 {
            // SAFETY: there is one element, and a block for each leaf.
            unsafe { (loops.fill)(prepared.leaf(chain, leaf), *from) };
        }
    }
    for &Slot { instruction, arg, leaf } in &prepared.slots {
        prepared.each[instruction].places[arg].pointer = ins[leaf].cast_mut();
    }
    let mut asks = [std::ptr::null(); LEAVES];
    let mut count = 0;
    for leaf in (0..chain.leaves).filter(|leaf| far >> leaf & 1 == 1) {
        asks[count] = ins[leaf];
        count += 1;
    }
    let (steps, asks) = (&prepared.each[..], &asks[..count]);
    // All but the first and the last are whole lines; in a strip there are no others.
    let over = out.addr() % nontemporal::LINE;
    let head = if over > 0 || bytes < loops.block { bytes.min(loops.block - over) } else { 0 };
    let whole = head + (bytes - head) / loops.block * loops.block;
    // SAFETY: every leaf that moves has as many bytes as there are results, and nothing else of it is read;
    // everything else is a block. `loops` gave those of a level that the machine has.
    unsafe {
        if !prepared.once.is_empty() {
            (loops.part)(&prepared.once, out, 0, 0..0, &[]);
        }
        if head > 0 {
            (loops.part)(steps, out, -over.cast_signed(), over..over + head, asks);
        }
        let blocks = if strip.is_none() { loops.whole } else { loops.strips };
        blocks(steps, out, strip, head..whole, asks);
        if whole < bytes {
            (loops.part)(steps, out, whole.cast_signed(), 0..bytes - whole, asks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name::program::build::bytecode::Code;
    use crate::by_name::program::run::interpreter::Interpreter;
    use crate::exec::inner_loop::{self, InnerLoop as _};
    use simulcast_kernels::op::Op;

    /// Numbers that nobody would guess, the same in every run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 20) as usize % end
        }
    }

    const FUNCTIONS: [Op; 7] = [Op::Exp, Op::Log, Op::Sin, Op::Cos, Op::Tanh, Op::Sigmoid, Op::Erf];

    const OPS: [Op; 30] = [
        Op::Exp,
        Op::Log,
        Op::Sin,
        Op::Cos,
        Op::Tanh,
        Op::Sigmoid,
        Op::Erf,
        Op::Add,
        Op::Subtract,
        Op::Multiply,
        Op::Divide,
        Op::Maximum,
        Op::Minimum,
        Op::Negative,
        Op::Absolute,
        Op::Square,
        Op::Sqrt,
        Op::Reciprocal,
        Op::Relu,
        Op::Floor,
        Op::Ceil,
        Op::Round,
        Op::Trunc,
        Op::Where,
        Op::Less,
        Op::LessEqual,
        Op::Greater,
        Op::GreaterEqual,
        Op::Equal,
        Op::NotEqual,
    ];

    /// Numbers of all kinds.
    fn number(random: &mut Random) -> f64 {
        const ODD: [f64; 11] = [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-310,
            1e-40,
            0.5,
            -1.5,
            70_000.0,
            -3e6,
        ];
        match random.below(3) {
            0 => ODD[random.below(ODD.len())],
            _ => random.below(2000) as f64 / 16.0 - 60.0,
        }
    }

    fn bytes(dtype: DType, value: f64) -> Bytes {
        if dtype == DType::F32 {
            Bytes::of((value as f32).to_ne_bytes())
        } else {
            Bytes::of(value.to_ne_bytes())
        }
    }

    /// Some steps on that many leaves: no fewer than the operations that are given, each in its turn.
    fn steps(random: &mut Random, dtype: DType, leaves: usize, ops: &[Op]) -> Vec<(Flat, DType)> {
        let mut steps: Vec<(Flat, DType)> = (0..leaves).map(|n| (Flat::Leaf(n), dtype)).collect();
        steps.push((Flat::Constant(bytes(dtype, number(random))), dtype));
        for &op in ops {
            let of = |steps: &[(Flat, DType)], dtype: DType, random: &mut Random| {
                let fit: Vec<usize> = (0..steps.len()).filter(|&n| steps[n].1 == dtype).collect();
                // The latest ones mostly, so that chains are long.
                let last = fit.len() - 1;
                if random.below(2) == 0 { fit[last] } else { fit[random.below(fit.len())] }
            };
            if op == Op::Where && !steps.iter().any(|step| step.1 == DType::Bool) {
                continue;
            }
            let chosen = if op == Op::Where { DType::Bool } else { dtype };
            let first = of(&steps, chosen, random);
            let args = [first, of(&steps, dtype, random), of(&steps, dtype, random)];
            let made = ops::result_of(op, dtype);
            steps.push((Flat::Apply(op, dtype, args), made));
        }
        // The result is a number, of all that was made.
        let last = steps.iter().rposition(|step| step.1 == dtype).unwrap_or(0);
        steps.push((Flat::Apply(Op::Add, dtype, [last, 0, 0]), dtype));
        steps
    }

    fn same(dtype: DType, got: &[u8], expected: &[u8]) -> bool {
        got.chunks(dtype.size()).zip(expected.chunks(dtype.size())).all(|(got, expected)| {
            let nan = |bytes: &[u8]| match dtype {
                DType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
                _ => f64::from_ne_bytes(bytes.try_into().unwrap()).is_nan(),
            };
            got == expected || nan(got) && nan(expected)
        })
    }

    // [E_BROADCAST_ANY_FUNC_3050]
    #[test]
    fn a_chain_is_its_steps_one_after_the_other() {
        for level in [Level::avx2(), Level::avx512()].into_iter().flatten() {
            chains_are_their_steps(level);
        }
    }

    fn chains_are_their_steps(level: Level) {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let (mut used, mut turned, mut banked) = (0, 0, 0);
        for case in 0..5000 {
            let dtype = if case % 2 == 0 { DType::F32 } else { DType::F64 };
            let size = dtype.size();
            let count = 1 + random.below(8);
            let ops: Vec<Op> = (0..count).map(|_| OPS[random.below(OPS.len())]).collect();
            let leaves = 1 + random.below(4);
            let steps = steps(&mut random, dtype, leaves, &ops);
            let types = vec![dtype; leaves];
            let Some(chain) = Chain::new(&steps, leaves, level) else { continue };
            // What stays in the caches is made by a loop for each step; all but functions are the same at
            // every level.
            let functions = ops.iter().any(|op| FUNCTIONS.contains(op));
            let of = if functions { level } else { Level::BASELINE };
            let plain = Code::new(&steps, &types, true, of).unwrap();
            let (len, splat) = (random.below(300), random.below(1 << leaves));
            let (over, after) = (random.below(16) * size, 64);
            let data: Vec<Vec<u8>> = (0..leaves)
                .map(|leaf| {
                    let own = if splat >> leaf & 1 == 1 { 1 } else { len };
                    (0..own)
                        .flat_map(|_| bytes(dtype, number(&mut random)).0[..size].to_vec())
                        .collect()
                })
                .collect();
            // Aligned as elements are, and no further: what is read beyond an end is another's.
            let mut ins = [std::ptr::NonNull::<u64>::dangling().as_ptr().cast_const().cast(); 4];
            let kept: Vec<Vec<u64>> = data
                .iter()
                .map(|bytes| {
                    let words = bytes.chunks(8).map(|chunk| {
                        let mut word = [0; 8];
                        word[..chunk.len()].copy_from_slice(chunk);
                        u64::from_ne_bytes(word)
                    });
                    words.collect()
                })
                .collect();
            for (place, words) in ins.iter_mut().zip(&kept) {
                *place = words.as_ptr().cast();
            }
            let mut expected = vec![0_u64; len.max(1)];
            let mut got = vec![Block([7; BLOCK]); (over + len * size + after).div_ceil(BLOCK) + 1];
            let (out, mut prepared) = (got.as_mut_ptr().cast::<u8>(), Prepared::new());
            // SAFETY: as many elements as the pattern says, and room for as many results.
            unsafe {
                let made = expected.as_mut_ptr().cast();
                let whole = inner_loop::Run {
                    out: made,
                    ins: &ins,
                    repeated: splat as u32,
                    prefetch: 0,
                    len,
                };
                Interpreter::new(&plain, ins.len()).contiguous(&whole);
                let to = (out.add(over), &Strip::NONE);
                run(&chain, &mut prepared, to, &ins, splat, len, (1 << leaves) - 1);
                drop(nontemporal::Fence);
                let all = std::slice::from_raw_parts(out, got.len() * BLOCK);
                let expected = std::slice::from_raw_parts(expected.as_ptr().cast(), len * size);
                let (made, end) = (&all[over..over + len * size], over + len * size);
                assert!(same(dtype, made, expected), "{steps:?} {splat:b} {len} {over}");
                assert!(all[..over].iter().chain(&all[end..]).all(|&byte| byte == 7));
            }
            used += 1;
            let any = |what: fn(&Step) -> bool| usize::from(prepared.each.iter().any(what));
            turned += any(|step| step.act.turned() != step.act);
            banked += any(|step| step.act == Act::Store && step.places[0].bank != Bank::None);
        }
        assert!(used > 2000 && turned > 500, "{used} chains, {turned} of them turned");
        assert_eq!(banked > 200, Some(level) != Level::avx2(), "{banked} of them with banks");
    }

    #[test]
    fn what_is_no_light_step_on_one_type_of_float_is_no_chain() {
        let level = Level::avx2().unwrap_or(Level::BASELINE);
        let leaf = |dtype| (Flat::Leaf(0), dtype);
        let apply = |op, dtype, made| (Flat::Apply(op, dtype, [0; 3]), made);
        let (f32, f64, bool) = (DType::F32, DType::F64, DType::Bool);
        for steps in [
            vec![leaf(f32), apply(Op::Tan, f32, f32)],
            vec![leaf(DType::I32), apply(Op::Add, DType::I32, DType::I32)],
            vec![leaf(f32), (Flat::Cast(0), f64)],
            vec![leaf(f32), apply(Op::Less, f32, bool)],
            vec![leaf(f32)],
        ] {
            assert!(Chain::new(&steps, 1, level).is_none(), "{steps:?}");
        }
    }
}
