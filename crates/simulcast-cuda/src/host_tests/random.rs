//! Random arrays and programs, the same on every run.

use simulcast::program::Hoisting;
use simulcast::{DType, TypedProgram};

use super::{Memory, Operand};
use crate::plan::contiguous;

/// Numbers that look random: `SplitMix64`.
pub(crate) struct Source(u64);

/// What the operands of an expression are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
    Complex,
}

/// An expression, its operands, and how near to the host's result the device's has to be.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) program: TypedProgram,
    pub(crate) operands: Vec<Operand>,
    pub(crate) hoisting: Hoisting,
    /// Units of precision that values may be off; 0 where every bit counts.
    pub(crate) units: f64,
    /// The precision of what is computed in, where the result's own is finer.
    pub(crate) precision: f64,
    /// Of a sum, the sum of the magnitudes that it adds.
    pub(crate) scale: Option<TypedProgram>,
}

/// How many units of precision the result of an operation, or of a program, may be off.
pub(crate) fn places(name: &str) -> f64 {
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
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
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

    /// Every number of an integer type of 8 or 16 bits, 256 times 256 of them.
    pub(crate) fn every(dtype: DType) -> Operand {
        let mut own = Self::new(0).array(dtype, &[256, 256], false);
        let bytes: Vec<u8> = (0..=u16::MAX)
            .flat_map(|number| number.to_le_bytes().into_iter().take(dtype.size()))
            .collect();
        for (word, bytes) in own.memory.0.iter_mut().zip(bytes.chunks_exact(16)) {
            *word = u128::from_le_bytes(std::array::from_fn(|at| bytes[at]));
        }
        own
    }

    /// An array whose sums of products have no terms that are far larger than the sum.
    pub(crate) fn bounded(&mut self, dtype: DType, shape: &[usize], is_odd: bool) -> Operand {
        match dtype {
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => self.small(dtype, shape, is_odd),
            DType::I64 => {
                let mut own = self.array(dtype, shape, is_odd);
                // 24 bits, so that sums of products are exact in `float64`, which means are computed in.
                for word in &mut own.memory.0 {
                    let halves = [*word as i64, (*word >> 64) as i64].map(|own| own << 40 >> 40);
                    *word = u128::from(halves[0] as u64) | u128::from(halves[1] as u64) << 64;
                }
                own
            }
            _ => self.array(dtype, shape, is_odd),
        }
    }

    /// An array of numbers between 1/2 and 2, which sums of products of them do not leave far.
    pub(crate) fn small(&mut self, dtype: DType, shape: &[usize], is_odd: bool) -> Operand {
        let mut own = self.array(dtype, shape, is_odd);
        let size = dtype.size();
        let bytes: Vec<u8> = (0..own.memory.0.len() * 16 / size)
            .flat_map(|_| {
                let number = 0.5 + self.below(1500) as f64 / 1000.0;
                match dtype {
                    DType::F16 => half::f16::from_f64(number).to_ne_bytes().to_vec(),
                    DType::Bf16 => half::bf16::from_f64(number).to_ne_bytes().to_vec(),
                    DType::F32 => (number as f32).to_ne_bytes().to_vec(),
                    _ => number.to_ne_bytes().to_vec(),
                }
            })
            .collect();
        for (word, bytes) in own.memory.0.iter_mut().zip(bytes.chunks_exact(16)) {
            *word = u128::from_ne_bytes(std::array::from_fn(|at| bytes[at]));
        }
        own
    }

    /// An array; with any strides, where that is wanted: padded, transposed, backwards, repeated, not aligned.
    pub(crate) fn array(&mut self, dtype: DType, shape: &[usize], is_odd: bool) -> Operand {
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

    /// A term of operands named `a`, `b` and `c` by operations whose every bit is defined.
    fn term(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.below(6) == 0 {
            let name = ["a", "b", "c", "a", "b", "c", "2", "3"][self.below(8)];
            return if name == "2" && kind == Kind::Float { "0.5".into() } else { name.into() };
        }
        let own = |source: &mut Self| source.term(kind, depth - 1);
        let (x, y) = (own(self), own(self));
        let condition =
            format!("{} {} {}", own(self), ["<", ">=", "==", ">"][self.below(4)], own(self));
        let float = [
            format!("({x} + {y})"),
            format!("({x} - {y})"),
            format!("({x} * {y})"),
            format!("({x} / {y})"),
            format!("maximum({x}, {y})"),
            format!("minimum({x}, {y})"),
            format!("where({condition}, {x}, {y})"),
            format!("abs({x})"),
            format!("(-{x})"),
            format!("square({x})"),
            format!("floor({x})"),
            format!("relu({x})"),
        ];
        let int = [
            format!("({x} + {y})"),
            format!("({x} - {y})"),
            format!("({x} * {y})"),
            format!("({x} // {y})"),
            format!("({x} % {y})"),
            format!("maximum({x}, {y})"),
            format!("minimum({x}, {y})"),
            format!("where({condition}, {x}, {y})"),
            format!("({x} & {y})"),
            format!("({x} | {y})"),
            format!("({x} ^ {y})"),
            format!("abs({x})"),
        ];
        let complex = [
            format!("({x} + {y})"),
            format!("({x} - {y})"),
            format!("(-{x})"),
            format!("conjugate({x})"),
        ];
        match kind {
            Kind::Float => float[self.below(float.len())].clone(),
            Kind::Int => int[self.below(int.len())].clone(),
            Kind::Complex => complex[self.below(complex.len())].clone(),
        }
    }

    /// A random expression over random layouts; none where what was made does not go together, or would be large.
    pub(crate) fn expression(&mut self) -> Option<Case> {
        const FLOATS: [DType; 8] = [
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::Bf16,
            DType::I32,
            DType::U8,
            DType::Bool,
        ];
        const INTS: [DType; 9] = [
            DType::I8,
            DType::I16,
            DType::I32,
            DType::I64,
            DType::U8,
            DType::U16,
            DType::U32,
            DType::U64,
            DType::Bool,
        ];
        const FUNCTIONS: [&str; 12] = [
            "exp", "log", "sin", "cos", "tanh", "sqrt", "erf", "sigmoid", "arctan", "log1p",
            "expm1", "cbrt",
        ];
        let kind = [Kind::Float, Kind::Float, Kind::Float, Kind::Int, Kind::Int, Kind::Complex]
            [self.below(6)];
        let types: &[DType] = match kind {
            Kind::Float => &FLOATS,
            Kind::Int => &INTS,
            Kind::Complex => &[DType::C64, DType::C128, DType::F32],
        };
        let first = types[self.below(types.len())];
        let is_mixed = self.below(3) == 0;
        let dtypes: Vec<DType> =
            (0..3).map(|_| if is_mixed { types[self.below(types.len())] } else { first }).collect();
        let depth = 1 + self.below(3);
        let (term, other) = (self.term(kind, depth), self.term(kind, depth));
        let axis = ["", ", axis=0", ", axis=-1", ", axis=-1, keepdims=True"][self.below(4)];
        let (mut units, mut scale) = (0.0, None);
        let text = match (self.below(10), kind) {
            (0 | 1, Kind::Float) => {
                units = 32.0;
                let mut function = || FUNCTIONS[self.below(FUNCTIONS.len())];
                let (f, g) = (function(), function());
                format!("{f}({term}) * {g}({other})")
            }
            (2, Kind::Float) => {
                units = 16.0;
                format!("{}({term})", FUNCTIONS[self.below(FUNCTIONS.len())])
            }
            (3, Kind::Float) => {
                let fold = ["sum", "mean"][self.below(2)];
                scale = Some(format!("{fold}(abs({term}){axis})"));
                format!("{fold}({term}{axis})")
            }
            (3, Kind::Int) => {
                // uint64 and signed numbers become float64.
                scale = Some(format!("sum(abs({term}){axis})"));
                format!("sum({term}{axis})")
            }
            (4, Kind::Float | Kind::Int) => {
                format!("{}({term}{axis})", ["max", "min"][self.below(2)])
            }
            (5, Kind::Float | Kind::Int) => {
                format!("max({term}, axis=-1, keepdims=True) - {other}")
            }
            (6, _) => format!("({term}).T + 1"),
            _ => term,
        };
        let names: Vec<(&str, DType)> = ["a", "b", "c"]
            .into_iter()
            .zip(dtypes)
            .filter(|(name, _)| {
                text.split(|c: char| !c.is_alphanumeric()).any(|word| word == *name)
            })
            .collect();
        if names.is_empty() {
            return None;
        }
        let program = TypedProgram::parse(&text, &names).ok()?;
        let scale = scale.filter(|_| program.dtype().is_float());
        let scale = scale.map(|text| TypedProgram::parse(&text, &names)).transpose().ok()?;
        let shapes = self.shapes(names.len());
        if shapes[0].iter().product::<usize>() > 60_000 {
            return None;
        }
        let own: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let hoisting = [Hoisting::WherePays, Hoisting::Always, Hoisting::Never][self.below(3)];
        let passes = program.lower(&own, simulcast::Rule::Numpy, hoisting).ok()?;
        let elements =
            |pass: &simulcast::program::lowered::Pass| pass.shape().iter().product::<usize>();
        if passes.iter().any(|pass| elements(pass) > 200_000) {
            return None;
        }
        let operands: Vec<Operand> =
            names.iter().zip(&shapes).map(|(own, shape)| self.array(own.1, shape, true)).collect();
        // Functions of 16-bit floats and of small types are computed in float32.
        let precision = if units > 0.0 { f64::from(f32::EPSILON) } else { 0.0 };
        let name = format!("{text} of {names:?} {shapes:?} {hoisting:?}");
        Some(Case { name, program, operands, hoisting, units, precision, scale })
    }

    /// A program, its operands, and what is hoisted; none where types do not go together, or it would be large.
    pub(crate) fn program(&mut self) -> Option<(String, TypedProgram, Vec<Operand>, Hoisting)> {
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
