//! Random arrays and programs, the same on every run.

use simulcast::program::Hoisting;
use simulcast::{DType, TypedProgram};

use super::{Memory, Operand};
use crate::plan::contiguous;

/// Numbers that look random: `SplitMix64`.
pub(super) struct Source(u64);

/// How many units of precision the result of an operation, or of a program, may be off.
pub(super) fn places(name: &str) -> f64 {
    const FUNCTIONS: [&str; 30] = [
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "sqrt",
        "cbrt",
        "arc",
        "erf",
        "sigmoid",
        "power",
        "hypot",
        "**",
        "tanh",
        "sinh",
        "cosh",
        "sum",
        "mean",
        "prod",
        "absolute",
        "sign",
        "divide",
        "reciprocal",
        "expm1",
        "log1p",
        "round",
        "abs",
        "remainder",
        "fmod",
        "floor",
    ];
    if FUNCTIONS.iter().any(|own| name.contains(own)) { 64.0 } else { 0.0 }
}

impl Source {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(super) fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// A number of that type: small, or one of the edges.
    fn element(&mut self, dtype: DType, is_odd: bool) -> Vec<u8> {
        // What adds to other numbers in every order alike comes first.
        let small = self.below(2001) as f64 / 100.0 - 10.0;
        let edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            100.0,
            -1e4,
            1e-6,
            1e30,
            3e9,
        ];
        let number = if self.below(8) == 0 {
            edges[self.below(if is_odd { 9 } else { edges.len() })]
        } else {
            small
        };
        let bits = if self.below(6) == 0 { self.next() } else { small as i64 as u64 };
        match dtype {
            DType::Bool => {
                vec![if self.below(3) == 0 { (bits & 0xff) as u8 } else { u8::from(bits & 1 == 1) }]
            }
            DType::I8 | DType::U8 => vec![bits as u8],
            DType::I16 | DType::U16 => (bits as u16).to_ne_bytes().to_vec(),
            DType::I32 | DType::U32 => (bits as u32).to_ne_bytes().to_vec(),
            DType::I64 | DType::U64 => bits.to_ne_bytes().to_vec(),
            DType::F16 => half::f16::from_f64(number).to_ne_bytes().to_vec(),
            DType::Bf16 => half::bf16::from_f64(number).to_ne_bytes().to_vec(),
            DType::F32 => (number as f32).to_ne_bytes().to_vec(),
            DType::F64 => number.to_ne_bytes().to_vec(),
            // Edges of complex functions are the host's own, so that their parts stay small.
            DType::C64 => [small as f32, self.below(7) as f32 - 3.5].map(f32::to_ne_bytes).concat(),
            _ => [small, self.below(7) as f64 - 3.5].map(f64::to_ne_bytes).concat(),
        }
    }

    /// An array; with any strides, where that is wanted: padded, transposed, backwards, repeated, not aligned.
    pub(super) fn array(&mut self, dtype: DType, shape: &[usize], is_odd: bool) -> Operand {
        let rank = shape.len();
        let size = dtype.size();
        let mut order: Vec<usize> = (0..rank).collect();
        let (mut pad, mut backwards) = (vec![0; rank], vec![false; rank]);
        let kind = if is_odd { self.below(6) } else { 0 };
        if kind == 1 || kind == 5 {
            order.reverse();
        }
        if kind == 2 {
            pad.iter_mut().for_each(|pad| *pad = self.below(3));
        }
        if kind == 3 || kind == 5 {
            backwards.iter_mut().for_each(|own| *own = self.below(2) == 0);
        }
        let laid: Vec<usize> = order.iter().map(|&axis| shape[axis] + pad[axis]).collect();
        let row_major = contiguous(&laid);
        let mut strides = vec![0; rank];
        for (place, &axis) in order.iter().enumerate() {
            strides[axis] = row_major[place];
        }
        if kind == 4 && rank > 0 {
            strides[self.below(rank)] = 0;
        }
        let start = if is_odd && self.below(4) == 0 { 1 + self.below(3) } else { 0 };
        let elements = laid.iter().product::<usize>() + start;
        let mut memory = Memory::new(elements * size);
        let bytes: Vec<u8> = (0..elements).flat_map(|_| self.element(dtype, is_odd)).collect();
        for (word, own) in memory.0.iter_mut().zip(bytes.chunks(16)) {
            let mut whole = [0; 16];
            whole[..own.len()].copy_from_slice(own);
            *word = u128::from_ne_bytes(whole);
        }
        let mut offset = start * size;
        for axis in 0..rank {
            if backwards[axis] && shape[axis] > 0 {
                offset += strides[axis].unsigned_abs() * (shape[axis] - 1) * size;
                strides[axis] = -strides[axis];
            }
        }
        Operand { memory, offset, dtype, shape: shape.to_vec(), strides }
    }

    /// Shapes that broadcast.
    fn shapes(&mut self, count: usize) -> Vec<Vec<usize>> {
        let rank = self.below(5);
        let sizes: Vec<usize> = (0..rank)
            .map(|_| match self.below(8) {
                0 => 1,
                1 => 70,
                2 => 64,
                3 => 33,
                4 => 16,
                own => own,
            })
            .collect();
        let mut own: Vec<Vec<usize>> = (0..count)
            .map(|_| {
                let start = if self.below(3) == 0 { self.below(rank + 1) } else { 0 };
                sizes[start..]
                    .iter()
                    .map(|&size| if self.below(4) == 0 { 1 } else { size })
                    .collect()
            })
            .collect();
        own[0] = sizes;
        own
    }

    /// A program, its operands, and what is hoisted; none where types do not go together, or it would be large.
    pub(super) fn program(&mut self) -> Option<(String, TypedProgram, Vec<Operand>, Hoisting)> {
        const TYPES: [DType; 10] = [
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::Bf16,
            DType::I32,
            DType::U8,
            DType::I64,
            DType::Bool,
            DType::C64,
        ];
        const TEXTS: [&str; 24] = [
            "a + b",
            "a * b + c",
            "(a - b) / c",
            "where(a > b, a, c)",
            "a",
            "maximum(a, minimum(b, c))",
            "a[..., None] * 2 + b",
            "a.T + 1",
            "sum(a, axis=0)",
            "sum(a * b, axis=-1)",
            "mean(a)",
            "max(a, axis=-1, keepdims=True) - c",
            "a - mean(a, axis=-1, keepdims=True)",
            "prod(minimum(abs(a), 1), axis=0)",
            "min(a + b)",
            "sum((a - b)**2, axis=-1)",
            "exp(b) + a * c",
            "a + exp(sin(b)) * tanh(c)",
            "sum(a.T, axis=0)",
            "(a == b) | (a < c)",
            "a.T * b.T",
            "a + b - a * 3",
            "sum(a)",
            "abs(a) + c",
        ];
        let text = TEXTS[self.below(TEXTS.len())];
        let dtypes: Vec<DType> = (0..3).map(|_| TYPES[self.below(TYPES.len())]).collect();
        let same = self.below(2) == 0;
        let dtype = |n: usize| if same { dtypes[0] } else { dtypes[n] };
        let names = ["a", "b", "c"];
        let used: Vec<(&str, DType)> = names
            .iter()
            .enumerate()
            .filter(|(_, name)| {
                text.split(|c: char| !c.is_alphanumeric()).any(|word| word == **name)
            })
            .map(|(n, name)| (*name, dtype(n)))
            .collect();
        let program = TypedProgram::parse(text, &used).ok()?;
        let shapes = self.shapes(used.len());
        let elements: usize = shapes[0].iter().product();
        if elements > 60_000 {
            return None;
        }
        let own: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let hoisting = [Hoisting::WherePays, Hoisting::Always, Hoisting::Never][self.below(3)];
        program.lower(&own, simulcast::Rule::Numpy, hoisting).ok()?;
        let operands: Vec<Operand> =
            used.iter().zip(&shapes).map(|(own, shape)| self.array(own.1, shape, true)).collect();
        let name = format!("{text} of {used:?} {shapes:?}");
        Some((name, program, operands, hoisting))
    }
}
