//! The expression graph: typed steps, each after those that it needs.
//!
//! Equal steps are one step, so that a subexpression that occurs twice is computed once. A step's
//! index is larger than those of its arguments: every pass is a loop, and no expression is too deep.

use std::collections::HashMap;
use std::ops::Range;

use crate::by_name::program::front::axes::{AxisPattern, Fold};
use crate::by_name::types::{Literal, OperandType};
use simulcast_kernels::dtype::{Complex, DType, Scalar};
use simulcast_kernels::op::Op;

/// A value of a program under construction.
///
/// ```
/// use simulcast::program::{Builder, Node};
/// use simulcast::types::{OperandType, Promotion};
/// use simulcast::DType;
///
/// let mut build = Builder::new(Promotion::Numpy);
/// let x: Node = build.operand("x", DType::F32);
/// assert_eq!(build.type_of(x), OperandType::Array(DType::F32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub(crate) u32);

impl Node {
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operand seen otherwise: no element is moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum View {
    Insert(Vec<AxisPattern>),
    Transpose(Option<Vec<isize>>),
}

/// Which axes a reduction takes, and whether they stay with size 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Over {
    pub(crate) fold: Fold,
    pub(crate) axes: Option<Vec<isize>>,
    pub(crate) keepdims: bool,
}

/// A constant, by its bytes: NaN is equal to itself, and 0.0 is not -0.0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Plain(Bytes),
    Text(String),
}

/// The bytes of one element of any plain type, in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(16))]
pub(crate) struct Bytes(pub(crate) [u8; 16]);

impl Bytes {
    pub(crate) fn of<const N: usize>(bytes: [u8; N]) -> Self {
        let mut all = Self::default();
        all.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        all
    }

    /// The number, where it is a `complex128`.
    pub(crate) fn complex(self) -> Complex<f64> {
        let [re, im] = [0, 8].map(|start| std::array::from_fn(|n| self.0[start + n]));
        Complex::new(f64::from_ne_bytes(re), f64::from_ne_bytes(im))
    }
}

impl Value {
    /// The value of a scalar: integers wrap, floats round, into its type.
    pub(crate) fn new(scalar: &Scalar) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the type says how many bits there are"
        )]
        let bytes = match *scalar {
            Scalar::Bool(value) => Bytes::of([u8::from(value)]),
            Scalar::Int(dtype, value) => match dtype.size() {
                1 => Bytes::of((value as i8).to_ne_bytes()),
                2 => Bytes::of((value as i16).to_ne_bytes()),
                4 => Bytes::of((value as i32).to_ne_bytes()),
                _ => Bytes::of((value as i64).to_ne_bytes()),
            },
            Scalar::Float(DType::F16, value) => Bytes::of(half::f16::from_f64(value).to_ne_bytes()),
            Scalar::Float(DType::Bf16, value) => {
                Bytes::of(half::bf16::from_f64(value).to_ne_bytes())
            }
            Scalar::Float(DType::F32, value) => Bytes::of((value as f32).to_ne_bytes()),
            Scalar::Float(_, value) => Bytes::of(value.to_ne_bytes()),
            Scalar::Complex(DType::C64, value) => {
                let [re, im] = [value.re as f32, value.im as f32].map(f32::to_ne_bytes);
                let mut both = Bytes::of(re);
                both.0[4..8].copy_from_slice(&im);
                both
            }
            Scalar::Complex(_, value) => {
                let mut both = Bytes::of(value.re.to_ne_bytes());
                both.0[8..].copy_from_slice(&value.im.to_ne_bytes());
                both
            }
            Scalar::String(ref text) => return Self::Text(text.clone()),
        };
        Self::Plain(bytes)
    }
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Operand(usize),
    /// A number without a type of its own, until it meets one.
    Literal,
    Constant(Value),
    /// An operation whose arguments are of that type; the first `arity` nodes count.
    Apply(Op, DType, [Node; 3]),
    Cast(Node),
    View(Node, View),
    Fold(Node, Over),
}

impl Kind {
    /// The nodes that it needs.
    pub(crate) fn args(&self) -> &[Node] {
        match self {
            Self::Operand(_) | Self::Literal | Self::Constant(_) => &[],
            Self::Apply(op, _, args) => args.get(..op.arity()).unwrap_or(args),
            Self::Cast(node) | Self::View(node, _) | Self::Fold(node, _) => {
                std::slice::from_ref(node)
            }
        }
    }
}

/// A step: what it is, of which type, and where it stands in the text.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) is: OperandType,
    pub(crate) span: Range<usize>,
}

impl Step {
    /// Its element type, where it is no literal.
    pub(crate) fn dtype(&self) -> DType {
        match self.is {
            OperandType::Array(dtype) => dtype,
            OperandType::Literal(Literal::Bool(_)) => DType::Bool,
            OperandType::Literal(Literal::Int(_)) => DType::I64,
            OperandType::Literal(Literal::Float(_)) => DType::F64,
            OperandType::Literal(Literal::Complex(..)) => DType::C128,
        }
    }
}

/// Steps, each after those that it needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) steps: Vec<Step>,
    known: HashMap<(Kind, DType), Node>,
}

impl Graph {
    pub(crate) fn step(&self, node: Node) -> &Step {
        &self.steps[node.index()]
    }

    /// The node of a step, which may be there already.
    pub(crate) fn push(&mut self, kind: Kind, dtype: DType, span: Range<usize>) -> Node {
        let next = self.next();
        match self.known.entry((kind, dtype)) {
            std::collections::hash_map::Entry::Occupied(known) => {
                let node = *known.get();
                // An operand is declared before the text mentions it.
                if let Some(step) = self.steps.get_mut(node.index()).filter(|s| s.span.is_empty()) {
                    step.span = span;
                }
                node
            }
            std::collections::hash_map::Entry::Vacant(place) => {
                let kind = place.key().0.clone();
                place.insert(next);
                self.steps.push(Step { kind, is: OperandType::Array(dtype), span });
                next
            }
        }
    }

    pub(crate) fn literal(&mut self, literal: Literal, span: Range<usize>) -> Node {
        let node = self.next();
        self.steps.push(Step { kind: Kind::Literal, is: OperandType::Literal(literal), span });
        node
    }

    /// Never beyond `u32`: each step takes some bytes of text or a call of the builder's.
    fn next(&self) -> Node {
        Node(u32::try_from(self.steps.len()).unwrap_or(u32::MAX))
    }

    /// The constant of a node, where it is a plain one.
    pub(crate) fn constant(&self, node: Node) -> Option<Bytes> {
        match self.step(node).kind {
            Kind::Constant(Value::Plain(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_the_bytes_of_their_types_in_front() {
        let is = |dtype, value, bytes| {
            assert_eq!(Value::new(&Scalar::Int(dtype, value)), Value::Plain(bytes), "{dtype}");
        };
        is(DType::I8, -2, Bytes::of((-2_i8).to_ne_bytes()));
        is(DType::U16, 65_534, Bytes::of(65_534_u16.to_ne_bytes()));
        is(DType::I32, -2, Bytes::of((-2_i32).to_ne_bytes()));
        is(DType::U64, 3, Bytes::of(3_u64.to_ne_bytes()));
        is(DType::U64, u64::MAX.into(), Bytes::of(u64::MAX.to_ne_bytes()));
    }
}
