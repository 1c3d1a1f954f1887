//! What a kernel computes for one element: the steps of a pass as a C++ function.
//!
//! ```text
//! leaves      f32 x0, u8 x1        elements as they are in memory
//! steps       const f32 v2 = op_add(v0, v1);
//! value       rounded to the type of the result, or as it is joined by a reduction
//! ```

use std::fmt::Write as _;

use simulcast::program::Fold;
use simulcast::program::lowered::{Pass, PassLeaf, StepKind};
use simulcast::{DType, Op};

use crate::tuning::PAIRWISE_STEPS_MAX;

/// A type of elements as the code of kernels calls it, in memory.
pub(crate) const fn stored(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "u8",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U16 => "u16",
        DType::U32 => "u32",
        DType::U64 => "u64",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "c64",
        // Text never comes here: lowering refuses it.
        DType::C128 | DType::String => "c128",
    }
}

/// The same as values are computed in.
pub(crate) const fn computed(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        other => stored(widened(other)),
    }
}

/// What a type is computed in.
pub(crate) const fn widened(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

/// An element of memory as a value.
pub(crate) fn read(dtype: DType, element: &str) -> String {
    match dtype {
        DType::Bool => format!("{element} != 0"),
        DType::F16 | DType::Bf16 => format!("widen({element})"),
        _ => element.into(),
    }
}

/// A value converted to what memory holds of a type.
pub(crate) fn converted(to: DType, value: &str) -> String {
    match to {
        DType::Bool => format!("bool_of({value})"),
        _ if to.is_integer() => format!("int_of<{}>({value})", stored(to)),
        _ => format!("{}_of({value})", stored(to)),
    }
}

/// A number as a value: its words go to the arguments of the kernel, so that every number is served by one kernel.
fn constant(dtype: DType, bytes: &[u8; 16], words: &mut Vec<u64>) -> String {
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[at + k]));
    let half = |at: usize| u32::from_ne_bytes(std::array::from_fn(|k| bytes[at + k]));
    let first = u16::from_ne_bytes([bytes[0], bytes[1]]);
    let mut kept = |word: u64| {
        words.push(word);
        format!("c[{}]", words.len() - 1)
    };
    let mut float = |bits: u32| format!("f32_bits((u32){})", kept(bits.into()));
    match dtype {
        DType::Bool => (bytes[0] != 0).to_string(),
        DType::F16 => float(half::f16::from_bits(first).to_f32().to_bits()),
        DType::Bf16 => float(half::bf16::from_bits(first).to_f32().to_bits()),
        DType::F32 => float(half(0)),
        DType::F64 => format!("f64_bits({})", kept(word(0))),
        DType::C64 => {
            let (re, im) = (float(half(0)), float(half(4)));
            format!("pair({re}, {im})")
        }
        DType::C128 => {
            let (re, im) = (kept(word(0)), kept(word(8)));
            format!("pair(f64_bits({re}), f64_bits({im}))")
        }
        _ => format!("({}){}", stored(dtype), kept(word(0))),
    }
}

/// What a kernel computes.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The types of the leaves' elements in memory.
    pub(crate) leaves: Vec<DType>,
    /// The function `value` of elements, and for reductions `identity`, `join` and `finish`.
    pub(crate) text: String,
    /// The type of the result's elements in memory.
    pub(crate) result: DType,
    /// The type that elements are joined in, of a reduction.
    pub(crate) element: Option<DType>,
    /// Whether anything in it is complex.
    pub(crate) is_complex: bool,
    /// The numbers that stand in the program, as the kernel's arguments have them.
    pub(crate) constants: Vec<u64>,
    /// Whether it is a few instructions, none of them a call.
    pub(crate) is_light: bool,
    /// The reductions that a joint kernel computes.
    pub(crate) parts: Vec<BodyPart>,
    /// The function `packed` of a word of elements of 8 or 16 bits, where the program has one.
    pub(crate) packed: Option<String>,
}

/// A reduction among several: its functions are in the namespace `v` with its number.
#[derive(Clone, Debug)]
pub(crate) struct BodyPart {
    /// What its values are joined in.
    pub(crate) element: DType,
    /// For each of its leaves, which of the body's that is.
    pub(crate) leaves: Vec<usize>,
    /// Where its numbers begin among the body's.
    pub(crate) constants: usize,
}

/// A reduction: how elements of a type become one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joining {
    pub(crate) fold: Fold,
    pub(crate) element: DType,
    pub(crate) result: DType,
}

impl Body {
    /// The body of a pass.
    pub(crate) fn new(pass: &Pass) -> Self {
        let leaves: Vec<DType> = pass.leaves().iter().map(PassLeaf::dtype).collect();
        let joining = pass.reduction().map(|reduction| Joining {
            fold: reduction.fold(),
            element: reduction.element(),
            result: pass.dtype(),
        });
        let made = joining.map_or(pass.dtype(), |joining| joining.element);
        let mut is_complex = leaves.iter().chain([&made]).any(|dtype| dtype.is_complex());
        let (mut lines, mut constants) = (String::new(), Vec::new());
        let mut types: Vec<DType> = Vec::with_capacity(pass.steps().len());
        for (at, step) in pass.steps().iter().enumerate() {
            let dtype = step.dtype();
            let (own, expression) = match *step.kind() {
                StepKind::Leaf(leaf) => (dtype, read(dtype, &format!("x{leaf}"))),
                StepKind::Constant(ref bytes) => (dtype, constant(dtype, bytes, &mut constants)),
                StepKind::Apply(op, of, args) => {
                    let wide = widened(of);
                    let list: Vec<String> =
                        args.iter().take(op.arity()).map(|arg| format!("v{arg}")).collect();
                    let call = format!("op_{}({})", op.name(), list.join(", "));
                    (op.row().domain.result(wide), call)
                }
                StepKind::Cast(of) => {
                    let made = converted(dtype, &format!("v{of}"));
                    (dtype, if dtype == DType::Bool { made } else { read(dtype, &made) })
                }
                // A step that this crate does not know yet is none that lowering makes.
                _ => (dtype, "unknown_step".into()),
            };
            is_complex |= dtype.is_complex() || own.is_complex();
            types.push(own);
            // Writing to a string never fails.
            let _ = writeln!(lines, "    const {} v{at} = {expression};", computed(own));
        }
        let (last, own) = (types.len().saturating_sub(1), types.last().copied());
        let own = own.unwrap_or(made);
        let value = format!("v{last}");
        let (returned, value) = match joining {
            Some(joining) if computed(own) == computed(joining.element) => (computed(own), value),
            Some(joining) => (computed(joining.element), converted(joining.element, &value)),
            None if made == DType::Bool && own == DType::Bool || computed(own) == stored(made) => {
                (stored(made), value)
            }
            None => (stored(made), converted(made, &value)),
        };
        let mut text = function(returned, &leaves, &format!("{lines}    return {value};\n"));
        if let Some(joining) = joining {
            text += &joining.text();
        }
        let element = joining.map(|joining| joining.element);
        let packed = joining.is_none().then(|| packed(pass)).flatten();
        let is_light = pass.steps().len() <= PAIRWISE_STEPS_MAX
            && pass.steps().iter().all(|step| match *step.kind() {
                StepKind::Apply(op, ..) => is_light(op),
                _ => true,
            });
        let result = pass.dtype();
        Self {
            leaves,
            text,
            result,
            element,
            is_complex,
            constants,
            is_light,
            parts: Vec::new(),
            packed,
        }
    }

    /// The body of a copy.
    pub(crate) fn copy(dtype: DType) -> Self {
        let leaves = vec![dtype];
        let value = if dtype == DType::Bool { "x0 != 0" } else { "x0" };
        let text = function(stored(dtype), &leaves, &format!("    return {value};\n"));
        let packed = match dtype {
            DType::Bool => Some("truths(x0)"),
            other => (other.size() <= 2).then_some("x0"),
        };
        let packed =
            packed.map(|own| format!("FN u32 packed(const u64 *c, u32 x0) {{ return {own}; }}\n"));
        let (element, constants) = (None, Vec::new());
        Self {
            leaves,
            text,
            result: dtype,
            element,
            is_complex: dtype.is_complex(),
            constants,
            is_light: true,
            parts: Vec::new(),
            packed,
        }
    }

    /// The body of several reductions, of leaves that they share: for each its own, and which of the leaves it reads.
    pub(crate) fn joint(leaves: Vec<DType>, own: &[(Self, Vec<usize>)]) -> Self {
        let (mut text, mut parts, mut constants) = (String::new(), Vec::new(), Vec::new());
        for (n, (body, leaves)) in own.iter().enumerate() {
            // Writing to a string never fails.
            let _ = writeln!(text, "namespace v{n} {{\n{}}}", body.text);
            let element = body.element.unwrap_or(DType::F32);
            parts.push(BodyPart { element, leaves: leaves.clone(), constants: constants.len() });
            constants.extend(&body.constants);
        }
        Self {
            leaves,
            text,
            result: DType::U8,
            element: None,
            is_complex: own.iter().any(|own| own.0.is_complex),
            constants,
            is_light: false,
            parts,
            packed: None,
        }
    }

    /// The body of a reduction of elements as they are.
    pub(crate) fn reduction(dtype: DType, joining: Joining) -> Self {
        let leaves = vec![dtype];
        let value = format!("    return {};\n", read(dtype, "x0"));
        let text = function(computed(joining.element), &leaves, &value) + &joining.text();
        let is_complex = dtype.is_complex() || joining.result.is_complex();
        let element = Some(joining.element);
        Self {
            leaves,
            text,
            result: joining.result,
            element,
            is_complex,
            constants: Vec::new(),
            is_light: true,
            parts: Vec::new(),
            packed: None,
        }
    }
}

/// Whether an operation is a few instructions for every type.
const fn is_light(op: Op) -> bool {
    matches!(
        op,
        Op::Add
            | Op::Subtract
            | Op::Multiply
            | Op::MultiplyAdd
            | Op::Square
            | Op::Negative
            | Op::Absolute
            | Op::Maximum
            | Op::Minimum
            | Op::Relu
            | Op::Where
            | Op::Equal
            | Op::NotEqual
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual
            | Op::LogicalAnd
            | Op::LogicalOr
            | Op::LogicalXor
            | Op::LogicalNot
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::BitwiseNot
    )
}

/// The steps of a pass on four elements of 8 bits in a word, where each of them has such a form.
fn packed(pass: &Pass) -> Option<String> {
    let dtype = pass.dtype();
    let fits = matches!(dtype, DType::Bool | DType::I8 | DType::U8)
        && !pass.leaves().is_empty()
        && pass.leaves().iter().all(|leaf| leaf.dtype() == dtype);
    if !fits {
        return None;
    }
    let (mut lines, mut words) = (String::new(), 0);
    for (at, step) in pass.steps().iter().enumerate() {
        if step.dtype() != dtype {
            return None;
        }
        let made = match *step.kind() {
            StepKind::Leaf(leaf) if dtype == DType::Bool => format!("truths(x{leaf})"),
            StepKind::Leaf(leaf) => format!("x{leaf}"),
            StepKind::Constant(bytes) if dtype == DType::Bool => {
                format!("{:#x}u", if bytes[0] != 0 { 0x0101_0101 } else { 0 })
            }
            StepKind::Constant(_) => {
                words += 1;
                format!("(u32)(u8)c[{}] * 0x01010101u", words - 1)
            }
            StepKind::Apply(op, of, args) if of == dtype => {
                let (a, b) = (format!("v{}", args[0]), format!("v{}", args[1]));
                match (op, dtype == DType::Bool) {
                    (Op::LogicalAnd | Op::Multiply | Op::Minimum, true) | (Op::BitwiseAnd, _) => {
                        format!("{a} & {b}")
                    }
                    (Op::LogicalOr | Op::Add | Op::Maximum, true) | (Op::BitwiseOr, _) => {
                        format!("{a} | {b}")
                    }
                    (Op::LogicalXor | Op::NotEqual, true) | (Op::BitwiseXor, _) => {
                        format!("{a} ^ {b}")
                    }
                    (Op::LogicalNot | Op::BitwiseNot, true) => format!("{a} ^ 0x01010101u"),
                    (Op::BitwiseNot, false) => format!("~{a}"),
                    (Op::Add, false) => format!("add_bytes({a}, {b})"),
                    (Op::Subtract, false) => format!("subtract_bytes({a}, {b})"),
                    _ => return None,
                }
            }
            _ => return None,
        };
        // Writing to a string never fails.
        let _ = writeln!(lines, "    const u32 v{at} = {made};");
    }
    let last = pass.steps().len().checked_sub(1)?;
    let list: String = (0..pass.leaves().len()).map(|n| format!(", u32 x{n}")).collect();
    Some(format!("FN u32 packed(const u64 *c{list}) {{\n{lines}    return v{last};\n}}\n"))
}

fn function(returned: &str, leaves: &[DType], lines: &str) -> String {
    let list: String = leaves
        .iter()
        .enumerate()
        .map(|(n, &leaf)| format!(", const {} x{n}", stored(leaf)))
        .collect();
    format!("FN {returned} value(const u64 *c{list}) {{\n{lines}}}\n")
}

impl Joining {
    /// The functions `identity`, `join` and `finish`.
    fn text(self) -> String {
        let Self { fold, element, result } = self;
        let own = computed(element);
        let float = |value: &str| match element {
            DType::C64 | DType::C128 => {
                let part = if element == DType::C64 { "f32" } else { "f64" };
                format!(
                    "pair(({part}){value}, ({part}){})",
                    if fold == Fold::Product { "0" } else { value }
                )
            }
            _ => format!("({own}){value}"),
        };
        let is_real = element.is_float() || element.is_complex();
        let infinity = "f64_bits(0x7ff0000000000000ull)";
        let (identity, op) = match fold {
            // -0.0 leaves what it is added to as it is.
            Fold::Sum | Fold::Mean if is_real => (float("-0.0"), Op::Add),
            Fold::Sum | Fold::Mean => (float("0"), Op::Add),
            Fold::Product => (float("1"), Op::Multiply),
            Fold::Maximum if is_real => (float(&format!("-{infinity}")), Op::Maximum),
            Fold::Maximum if element == DType::Bool => ("false".into(), Op::Maximum),
            Fold::Maximum => (format!("smallest<{own}>()"), Op::Maximum),
            Fold::Minimum if is_real => (float(infinity), Op::Minimum),
            Fold::Minimum if element == DType::Bool => ("true".into(), Op::Minimum),
            Fold::Minimum => (format!("largest<{own}>()"), Op::Minimum),
        };
        let mut lines = String::new();
        if matches!(fold, Fold::Sum | Fold::Mean) && is_real {
            // Of nothing, the sum is 0.0 all the same.
            let _ = writeln!(lines, "    if (count == 0) x = {};", float("0"));
        }
        if fold == Fold::Mean {
            let count = converted(element, "(f64)count");
            let _ = writeln!(lines, "    x = op_divide(x, {count});");
        }
        let made = if computed(result) == own && stored(result) == stored(element) {
            "x".into()
        } else {
            converted(result, "x")
        };
        let _ = writeln!(lines, "    return {made};");
        let name = op.name();
        format!(
            "FN {own} identity() {{ return {identity}; }}\n\
             FN {own} join({own} a, {own} b) {{ return op_{name}(a, b); }}\n\
             FN {} finish({own} x, u64 count) {{\n{lines}}}\n",
            stored(result)
        )
    }
}
