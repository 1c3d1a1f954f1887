//! Chains: code of light steps and some functions on `float32` or `float64`, as one loop of the register machine.
//!
//! ```text
//! (a - b) / c * d + e      load a, subtract b, divide by c, multiply by d, add e
//! a * b + c * d            load a, multiply by b, store 0, load c, multiply by d, add 0
//! where(a > b, a, b) * c   load a, greater than b, choose a or b, multiply by c
//! ```
//!
//! A value that the next step alone reads stays in the accumulator; every other one is stored in a block in the first-level
//! cache. An operand that is repeated along a run fills a block, and steps that read nothing else run once for all blocks.
//!
//! With non-temporal stores the loop stores results straight from registers. With ordinary stores a chain
//! is used for exactly two steps that are no pair of [`simulcast_kernels::ops::pair`]; more steps are faster as a loop each,
//! which the compiler optimises better (`tuning::CACHED_CHAIN_STEPS`).
//!
//! Invariant: as in [`crate::by_name::program::run::interpreter`].

use crate::by_name::program::build::bytecode::{Args, Flat, From, LEAVES, Slot};
use crate::by_name::program::build::graph::Bytes;
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::dtype::DType;
use simulcast_kernels::ops::{self};
use simulcast_kernels::register_vm::{Act, ChainLoops, ChainStep, Place};
use simulcast_kernels::tuning::{
    CACHE_LINE_BYTES, CACHED_CHAIN_STEPS, CHAIN_BLOCK_BYTES, CHAIN_BLOCKS,
};

/// What a step does; its first argument is the accumulator, unless its operands are swapped.
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
    loops: ChainLoops,
}

impl Chain {
    /// The bytes of results that the loop makes at a time: shorter runs go step by step.
    pub(in crate::by_name::program) fn block(&self) -> usize {
        self.loops.block
    }

    /// Whether it is faster than a loop for each step on data in a cache too.
    pub(in crate::by_name::program) fn pays_in_cache(&self) -> bool {
        self.applies.len() == CACHED_CHAIN_STEPS
    }

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
                        let (place, is_mask) = *places.get(arg)?;
                        // The first operand of a choice is a comparison, and no other operand is.
                        if is_mask != (act == Act::Choose && number == 0) {
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
        let small = applies.len() <= CHAIN_BLOCKS && constants.len() + leaves <= CHAIN_BLOCKS;
        let last = matches!(places.last()?.0, From::Made(_));
        let loops = loops(dtype, level, &applies)?;
        (small && last).then_some(Self { applies, constants, leaves, size: dtype.size(), loops })
    }
}

/// The loops for steps of a type, where this machine has any.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn loops(dtype: DType, level: Level, applies: &[Apply]) -> Option<ChainLoops> {
    use simulcast_kernels::cpu::level::Kind;
    use simulcast_kernels::register_vm::BlockShare;
    let share = match level.kind() {
        Kind::Baseline => return None,
        Kind::Avx2 if applies.iter().any(|apply| apply.act.is_long()) => BlockShare::Half,
        Kind::Avx2 => BlockShare::Short,
        Kind::Avx512 => BlockShare::Long,
    };
    match dtype {
        DType::F32 => Some(simulcast_kernels::register_vm::chains(false, share)),
        DType::F64 => Some(simulcast_kernels::register_vm::chains(true, share)),
        _ => None,
    }
}

/// Other architectures have no chains.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn loops(_: DType, _: Level, _: &[Apply]) -> Option<ChainLoops> {
    None
}

/// A block of values.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; CHAIN_BLOCK_BYTES]);

/// A chain bound to its operands, for one pattern of repeated leaves.
#[derive(Default)]
pub(in crate::by_name::program) struct ChainBindings {
    /// The pattern, once there is one.
    repeated: Option<usize>,
    /// A block for each value, then for each leaf, then for each constant.
    blocks: Vec<Block>,
    /// The steps that repeat, and all others.
    once: Vec<ChainStep>,
    each: Vec<ChainStep>,
    /// The leaves that move, among those others.
    slots: Vec<Slot>,
    /// Whether each value repeats.
    repeats: Vec<bool>,
}

impl ChainBindings {
    /// Keeps the memory alone, for another chain.
    pub(in crate::by_name::program) fn unbind(&mut self) {
        self.repeated = None;
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

    /// Points the steps to a run's operands, and computes what repeats along it.
    ///
    /// # Safety
    ///
    /// As [`run`].
    unsafe fn bind(&mut self, chain: &Chain, ins: &[*const u8], repeated: usize, out: *mut u8) {
        if self.repeated != Some(repeated) {
            self.prepare(chain, repeated);
        }
        for (leaf, from) in ins.iter().enumerate().take(chain.leaves) {
            if repeated >> leaf & 1 == 1 {
                // SAFETY: there is one element, and a block for each leaf.
                unsafe { (chain.loops.fill)(self.leaf(chain, leaf), *from) };
            }
        }
        for &Slot { instruction, arg, leaf } in &self.slots {
            self.each[instruction].places[arg].pointer = ins[leaf].cast_mut();
        }
        if !self.once.is_empty() {
            // SAFETY: these steps read and write blocks alone; no result is wanted.
            unsafe { (chain.loops.part)(&self.once, out, 0, 0..0, &[]) };
        }
    }

    /// Prepares a chain for a pattern.
    #[inline(never)]
    fn prepare(&mut self, chain: &Chain, repeated: usize) {
        let Chain { applies, constants, .. } = chain;
        self.repeated = Some(repeated);
        let count = applies.len() + chain.leaves + constants.len();
        if self.blocks.len() < count {
            self.blocks.resize(count, Block([0; CHAIN_BLOCK_BYTES]));
        }
        for (number, bytes) in constants.iter().enumerate() {
            let block = self.constant(chain, number);
            // SAFETY: it is a block of the vector's.
            unsafe { (chain.loops.fill)(block, bytes.0.as_ptr()) };
        }
        self.repeats.clear();
        for apply in applies {
            let all = apply.args.iter().all(|from| match from {
                From::Leaf(leaf) => repeated >> leaf & 1 == 1,
                From::Constant(_) => true,
                From::Made(made) => self.repeats[made],
            });
            self.repeats.push(all);
        }
        self.once.clear();
        self.each.clear();
        self.slots.clear();
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
                (2, act) if !has(a) && has(b) => self.push(chain, act.swapped(), &[a], once),
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
                self.push(chain, Act::Store, &[made], once);
            }
        }
    }

    /// Adds a step with its operands.
    fn push(&mut self, chain: &Chain, act: Act, operands: &[From], once: bool) {
        let repeated = self.repeated.unwrap_or(0);
        let instruction = if once { self.once.len() } else { self.each.len() };
        let mut places = [Place::NONE; 2];
        for (arg, (to, &from)) in places.iter_mut().zip(operands).enumerate() {
            match from {
                From::Leaf(leaf) if repeated >> leaf & 1 == 0 => {
                    to.moves = true;
                    self.slots.push(Slot { instruction, arg, leaf });
                }
                From::Leaf(leaf) => to.pointer = self.leaf(chain, leaf),
                From::Constant(constant) => to.pointer = self.constant(chain, constant),
                From::Made(made) => to.pointer = self.block(made),
            }
        }
        let list = if once { &mut self.once } else { &mut self.each };
        list.push(ChainStep { act, places });
    }
}

/// A chain over a run with non-temporal stores: `repeated` says which leaves repeat, `prefetch` which of them to
/// prefetch, a bit for each.
///
/// # Safety
///
/// The invariant of this module: `out` has room for `len` results, and every leaf has `len` elements, or one
/// where its bit of `repeated` is set. A fence must follow.
pub(in crate::by_name::program) unsafe fn run(
    chain: &Chain,
    bindings: &mut ChainBindings,
    out: *mut u8,
    ins: &[*const u8],
    repeated: usize,
    len: usize,
    prefetch: usize,
) {
    let (loops, bytes) = (&chain.loops, len * chain.size);
    // SAFETY: the caller keeps the conditions.
    unsafe { bindings.bind(chain, ins, repeated, out) };
    let mut asks = [std::ptr::null(); LEAVES];
    let mut count = 0;
    for leaf in (0..chain.leaves).filter(|leaf| prefetch >> leaf & 1 == 1) {
        asks[count] = ins[leaf];
        count += 1;
    }
    let (steps, asks) = (&bindings.each[..], &asks[..count]);
    // All but the first and the last are aligned to cache lines.
    let over = out.addr() % CACHE_LINE_BYTES;
    let head = if over > 0 || bytes < loops.block { bytes.min(loops.block - over) } else { 0 };
    let whole = head + (bytes - head) / loops.block * loops.block;
    // SAFETY: every leaf that moves has as many bytes as there are results, and nothing else of it is read;
    // everything else is a block. `loops` gave those of a level that the machine has.
    unsafe {
        if head > 0 {
            (loops.part)(steps, out, -over.cast_signed(), over..over + head, asks);
        }
        (loops.whole)(steps, out, true, head..whole, asks);
        if whole < bytes {
            (loops.part)(steps, out, whole.cast_signed(), 0..bytes - whole, asks);
        }
    }
}

/// A chain over a run with ordinary stores, of at least a block. The last block overlaps the one before it: it makes the
/// same results again.
///
/// # Safety
///
/// As [`run`].
pub(in crate::by_name::program) unsafe fn run_cached(
    chain: &Chain,
    bindings: &mut ChainBindings,
    out: *mut u8,
    ins: &[*const u8],
    repeated: usize,
    len: usize,
) {
    let (loops, bytes) = (&chain.loops, len * chain.size);
    debug_assert!(bytes >= loops.block, "shorter runs go step by step");
    let whole = bytes / loops.block * loops.block;
    // SAFETY: as in [`run`]; blocks lie within the run.
    unsafe {
        bindings.bind(chain, ins, repeated, out);
        let steps = &bindings.each[..];
        (loops.whole)(steps, out, false, 0..whole, &[]);
        if whole < bytes {
            (loops.whole)(steps, out, false, bytes - loops.block..bytes, &[]);
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

    /// Pseudo-random numbers (xorshift), the same in every run.
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
        let (mut used, mut turned) = (0, 0);
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
            let (len, repeated) = (random.below(300), random.below(1 << leaves));
            let (over, after) = (random.below(16) * size, 64);
            let data: Vec<Vec<u8>> = (0..leaves)
                .map(|leaf| {
                    let own = if repeated >> leaf & 1 == 1 { 1 } else { len };
                    (0..own)
                        .flat_map(|_| bytes(dtype, number(&mut random)).0[..size].to_vec())
                        .collect()
                })
                .collect();
            // Aligned to an element, and no further: a read beyond an end reaches memory of another array.
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
            let mut got = vec![
                Block([7; CHAIN_BLOCK_BYTES]);
                (over + len * size + after).div_ceil(CHAIN_BLOCK_BYTES) + 1
            ];
            let (out, mut bindings) = (got.as_mut_ptr().cast::<u8>(), ChainBindings::default());
            // SAFETY: as many elements as the pattern says, and room for as many results.
            unsafe {
                let made = expected.as_mut_ptr().cast();
                let whole = inner_loop::Run {
                    out: made,
                    ins: &ins,
                    repeated: repeated as u32,
                    prefetch: 0,
                    stores: crate::exec::strategy::Stores::Cached,
                    len,
                };
                Interpreter::new(&plain, ins.len()).contiguous(&whole, inner_loop::RowLoop::ONE);
                run(&chain, &mut bindings, out.add(over), &ins, repeated, len, (1 << leaves) - 1);
                drop(simulcast_kernels::cpu::nontemporal::Fence);
                let all = std::slice::from_raw_parts(out, got.len() * CHAIN_BLOCK_BYTES);
                let expected = std::slice::from_raw_parts(expected.as_ptr().cast(), len * size);
                let (made, end) = (&all[over..over + len * size], over + len * size);
                assert!(same(dtype, made, expected), "{steps:?} {repeated:b} {len} {over}");
                assert!(all[..over].iter().chain(&all[end..]).all(|&byte| byte == 7));
                if len * size >= chain.loops.block {
                    out.write_bytes(9, got.len() * CHAIN_BLOCK_BYTES);
                    run_cached(&chain, &mut bindings, out.add(over), &ins, repeated, len);
                    let all = std::slice::from_raw_parts(out, got.len() * CHAIN_BLOCK_BYTES);
                    assert!(same(dtype, &all[over..end], expected), "{steps:?} {repeated:b} {len}");
                    assert!(all[..over].iter().chain(&all[end..]).all(|&byte| byte == 9));
                }
            }
            used += 1;
            let any = |what: fn(&ChainStep) -> bool| usize::from(bindings.each.iter().any(what));
            turned += any(|step| step.act.swapped() != step.act);
        }
        assert!(used > 2000 && turned > 500, "{used} chains, {turned} of them turned");
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
