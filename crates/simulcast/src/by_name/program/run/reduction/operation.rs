//! What a stage computes before it reduces, where there is a loop that does both.

use crate::by_name::program::TypedProgram;
use crate::by_name::program::build::graph::{Bytes, Kind, Node};
use crate::by_name::program::build::stages::Stage;
use crate::by_name::program::run::bind::root;
use crate::{DType, Op};
use simulcast_kernels::cpu::level::Level;
use simulcast_kernels::reduce::{
    AlongRow, JoinOp, Reducer, SharedRow, fused_along_row, fused_shared_row,
};

/// An operand of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Leaf(usize),
    Constant(Bytes),
}

/// Operations on two operands, each after the one that it reads; with none of them, the first operand
/// as it stands.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) ops: Vec<Op>,
    pub(super) args: [Arg; 2],
    /// The loops that reduce them: along rows, and of one row with many.
    pub(super) along: AlongRow,
    pub(super) shared_row: Option<SharedRow>,
}

impl Operation {
    /// What a stage computes, where there is a loop for it. Everything is of one type.
    pub(super) fn new(
        program: &TypedProgram,
        stage: &Stage,
        (join, reducer): (JoinOp, &Reducer),
        dtype: DType,
        level: Level,
    ) -> Option<Self> {
        let graph = &program.graph;
        let arg = |node: Node| {
            if graph.step(node).dtype() != dtype {
                return None;
            }
            let leaf = stage.leaves.iter().position(|leaf| leaf.node == node);
            leaf.map(Arg::Leaf).or_else(|| graph.constant(node).map(Arg::Constant))
        };
        let pair = |node: Node| match graph.step(node).kind {
            Kind::Apply(op, own, [a, b, _]) if own == dtype && op.arity() == 2 => {
                Some((op, [arg(a)?, arg(b)?]))
            }
            _ => None,
        };
        let root = root(program, stage);
        let (ops, args) = match (arg(root), &graph.step(root).kind) {
            (Some(leaf), _) => (Vec::new(), [leaf; 2]),
            (None, &Kind::Apply(op, own, [of, ..])) if own == dtype && op.arity() == 1 => {
                match (pair(of), op, arg(of)) {
                    (Some((first, args)), ..) => (vec![first, op], args),
                    (None, Op::Square, Some(arg)) => (vec![Op::Multiply], [arg; 2]),
                    // Of all floats, the distance from zero.
                    (None, Op::Absolute, Some(arg)) => {
                        (vec![Op::Subtract, Op::Absolute], [arg, Arg::Constant(Bytes::default())])
                    }
                    _ => return None,
                }
            }
            _ => pair(root).map(|(op, args)| (vec![op], args))?,
        };
        let (along, shared_row) = match (&ops[..], join) {
            ([], _) => (reducer.along, None),
            (ops, JoinOp::Sum) => {
                (fused_along_row(ops, dtype, level)?, fused_shared_row(ops, dtype, level))
            }
            _ => return None,
        };
        Some(Self { ops, args, along, shared_row })
    }
}
