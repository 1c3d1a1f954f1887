//! From a program to [steps](super::steps) for arrays of some shapes, under a rule.

use simulcast_core::{BroadcastError, Names, Rule, resolve};

use super::steps::{Id, Kind as Own, Steps};
use crate::by_name::program::ProgramOperand;
use crate::by_name::program::build::graph::{Graph, Kind, Node, Over, Value};
use crate::by_name::program::build::stages::seen;
use crate::by_name::program::front::axes::{Fold, axis_of};
use crate::by_name::program::front::error::{ErrorOperand, ProgramError, ProgramErrorKind};
use crate::layout::broadcast::checked_len;

/// The steps of some values of a graph, and those values.
pub(super) fn lower(
    graph: &Graph,
    inputs: &[ProgramOperand],
    roots: &[Node],
    rule: Rule<'_>,
    shapes: &[&[usize]],
) -> Result<(Steps, Vec<Id>), ProgramError> {
    let mut needed = vec![false; graph.steps.len()];
    roots.iter().for_each(|root| needed[root.index()] = true);
    for at in (0..needed.len()).rev().filter(|&at| roots.iter().any(|root| root.index() >= at)) {
        if needed[at] {
            graph.steps[at].kind.args().iter().for_each(|arg| needed[arg.index()] = true);
        }
    }
    let mut lowering =
        Lowering { graph, inputs, rule, shapes, steps: Steps::default(), made: Vec::new() };
    for (at, needed) in needed.iter().enumerate() {
        let id = if *needed { lowering.step(Node(at as u32))? } else { None };
        lowering.made.push(id);
    }
    let of = |root: &Node| lowering.made.get(root.index()).copied().flatten();
    let ids: Option<Vec<Id>> = roots.iter().map(of).collect();
    match ids {
        Some(ids) => Ok((lowering.steps, ids)),
        // Never: every root was needed.
        None => Err(unsupported("a value that is not there", 0..0)),
    }
}

fn unsupported(what: &str, span: std::ops::Range<usize>) -> ProgramError {
    ProgramError::new(ProgramErrorKind::Unsupported(what.into()), span)
}

struct Lowering<'l> {
    graph: &'l Graph,
    inputs: &'l [ProgramOperand],
    rule: Rule<'l>,
    shapes: &'l [&'l [usize]],
    steps: Steps,
    /// The step of each node, where it has one.
    made: Vec<Option<Id>>,
}

impl Lowering<'_> {
    fn step(&mut self, node: Node) -> Result<Option<Id>, ProgramError> {
        let (step, dtype) = (self.graph.step(node), self.graph.step(node).dtype());
        let made = |node: &Node| self.made.get(node.index()).copied().flatten();
        let missing = || unsupported("text in a program of several results", step.span.clone());
        let id = match &step.kind {
            Kind::Literal => return Ok(None),
            Kind::Operand(operand) => {
                let shape = self.shapes.get(*operand).map(|shape| shape.to_vec());
                self.steps.push(Own::Operand(*operand), dtype, shape.ok_or_else(missing)?)
            }
            Kind::Constant(Value::Plain(bytes)) => {
                self.steps.push(Own::Constant(*bytes), dtype, Vec::new())
            }
            Kind::Constant(Value::Text(_)) => return Err(missing()),
            Kind::Cast(of) => {
                let of = made(of).ok_or_else(missing)?;
                self.steps.cast(of, dtype)
            }
            Kind::Apply(op, compute, _) => {
                let args: Option<Vec<Id>> = step.kind.args().iter().map(made).collect();
                let mut args = args.ok_or_else(missing)?;
                let shape = self.bring(node, &mut args)?;
                self.steps.apply(*op, *compute, &args, dtype, &shape)
            }
            Kind::View(of, view) => {
                let of = made(of).ok_or_else(missing)?;
                let own = self.steps.shape(of).to_vec();
                // Each axis by its number from 1 on, as if it were a stride: new ones have 0.
                let numbers: Vec<isize> = (1..=own.len()).map(usize::cast_signed).collect();
                let (shape, numbers) = seen(view, &own, &numbers).map_err(|kind| {
                    let span = step.span.clone();
                    let operand = ErrorOperand { span: span.clone(), dtype, shape: own };
                    ProgramError::of_operands(kind, span, [operand])
                })?;
                let axes = numbers.iter().map(|&number| number.cast_unsigned().checked_sub(1));
                self.steps.lay(of, &axes.collect::<Vec<_>>(), shape)
            }
            Kind::Fold(of, over) => {
                let of = made(of).ok_or_else(missing)?;
                self.fold(node, of, over)?
            }
        };
        Ok(Some(id))
    }

    /// Brings arguments to the shape of the result, by the rule; numbers fit everywhere.
    fn bring(&mut self, node: Node, args: &mut [Id]) -> Result<Vec<usize>, ProgramError> {
        let is_number = |id: &Id| matches!(self.steps.step(*id).kind, Own::Constant(_));
        let arrays: Vec<usize> = (0..args.len()).filter(|&at| !is_number(&args[at])).collect();
        let shapes: Vec<Vec<usize>> =
            arrays.iter().map(|&at| self.steps.shape(args[at]).to_vec()).collect();
        // Of the rules, those for one operand say something of an operation on one array.
        let alone = shapes.len() == 1 && self.rule.kind().arity() != Some(1);
        let shape = if let ([only], true) = (&shapes[..], alone) {
            only.clone()
        } else if shapes.is_empty() {
            Vec::new()
        } else {
            let own: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
            let refused = |error| self.clash(node, &arrays, &own, error);
            let plan = resolve(self.rule, &own).map_err(refused)?;
            let shape = plan.shape().to_vec();
            let too_large =
                |refusal| refused(BroadcastError::new(Rule::Exact, &[&shape[..]], refusal));
            checked_len(&shape).map_err(too_large)?;
            for (operand, &at) in arrays.iter().enumerate() {
                let mut axes = vec![None; shape.len()];
                for (from, &(size, to)) in plan.axes(operand).unwrap_or(&[]).iter().enumerate() {
                    if let Some(to) = to.filter(|&to| shape[to] == size) {
                        axes[to] = Some(from);
                    }
                }
                args[at] = self.steps.lay(args[at], &axes, shape.clone());
            }
            shape
        };
        for arg in args {
            if let Own::Constant(bytes) = self.steps.step(*arg).kind {
                let dtype = self.steps.dtype(*arg);
                *arg = self.steps.push(Own::Constant(bytes), dtype, shape.clone());
            }
        }
        Ok(shape)
    }

    /// The error of operands that do not come together, with their names.
    fn clash(
        &self,
        node: Node,
        arrays: &[usize],
        shapes: &[&[usize]],
        error: BroadcastError,
    ) -> ProgramError {
        let step = self.graph.step(node);
        let nodes = arrays.iter().filter_map(|&at| step.kind.args().get(at).copied());
        let nodes: Vec<Node> = nodes.collect();
        let name = |&node: &Node| {
            let mut at = node;
            while let Kind::View(of, _) = self.graph.step(at).kind {
                at = of;
            }
            match self.graph.step(at).kind {
                Kind::Operand(operand) => self.inputs.get(operand).map_or("", |own| &own.name),
                _ => "",
            }
        };
        let args = nodes.iter().zip(shapes).map(|(&node, shape)| {
            let step = self.graph.step(node);
            ErrorOperand { span: step.span.clone(), dtype: step.dtype(), shape: shape.to_vec() }
        });
        let error = error.with_names(Names::of(nodes.iter().map(name)));
        ProgramError::of_operands(ProgramErrorKind::Broadcast(error), step.span.clone(), args)
    }

    fn fold(&mut self, node: Node, of: Id, over: &Over) -> Result<Id, ProgramError> {
        let span = self.graph.step(node).span.clone();
        let shape = self.steps.shape(of).to_vec();
        let rank = shape.len();
        let mut mask = vec![over.axes.is_none(); rank];
        for &axis in over.axes.iter().flatten() {
            let kind = ProgramErrorKind::Axis { axis, rank };
            let at = axis_of(axis, rank).ok_or_else(|| ProgramError::new(kind, span.clone()))?;
            if std::mem::replace(&mut mask[at], true) {
                let axes = over.axes.clone().unwrap_or_default();
                return Err(ProgramError::new(ProgramErrorKind::Axes { axes, rank }, span));
            }
        }
        let gone = || (0..rank).filter(|&axis| mask[axis]);
        if matches!(over.fold, Fold::Maximum | Fold::Minimum) && gone().any(|axis| shape[axis] == 0)
        {
            return Err(ProgramError::new(ProgramErrorKind::Empty(over.fold), span));
        }
        let folded = self.steps.fold(of, over.fold, mask.clone());
        if over.keepdims {
            return Ok(folded);
        }
        let left: Vec<usize> = (0..rank).filter(|&axis| !mask[axis]).collect();
        let sizes = left.iter().map(|&axis| shape[axis]).collect();
        let axes: Vec<_> = left.into_iter().map(Some).collect();
        Ok(self.steps.lay(folded, &axes, sizes))
    }
}
