//! Steps whose shapes are known: what a program is on arrays of some shapes, under a rule.
//!
//! ```text
//! (x - m) / s          x of shape (8, 6), m of (6), s of (8, 1)
//!
//! 0  operand x                        (8, 6)
//! 1  operand m                        (6)
//! 2  lay 1 on axes [-, 0]             (8, 6)     repeated along the first axis
//! 3  subtract 0 2                     (8, 6)
//! 4  operand s, 5 lay 4 on [0, -]     (8, 6)
//! 6  divide 3 5                       (8, 6)
//! ```
//!
//! How a rule brings operands together is written out as [`Kind::Lay`], so that the arguments of an operation have its
//! result's shape, and nothing that follows has to know of rules. Equal steps are one step.

use std::collections::HashMap;

use crate::by_name::formula::{Formula, Term};
use crate::by_name::program::Builder;
use crate::by_name::program::build::graph::{self, Bytes, Node, Value};
use crate::by_name::program::front::axes::Fold;
use crate::by_name::slope::Slope;
use crate::by_name::types::{Promotion, TypeError};
use simulcast_kernels::dtype::{DType, Scalar};
use simulcast_kernels::op::Op;

/// A step, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::by_name::program) struct Id(pub(super) u32);

impl Id {
    pub(in crate::by_name::program) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::by_name::program) enum Kind {
    Operand(usize),
    /// A number, everywhere in its shape.
    Constant(Bytes),
    /// An operation on arguments of that type, all in the shape of the result; the first `arity` count.
    Apply(Op, DType, [Id; 3]),
    Cast(Id),
    /// A value with other axes: for each axis of the result, the axis that it is; none where the value is repeated.
    Lay(Id, Vec<Option<usize>>),
    /// A reduction along the axes that are marked; they stay, with size 1.
    Fold(Id, Fold, Vec<bool>),
}

impl Kind {
    /// The steps that it reads.
    pub(in crate::by_name::program) fn args(&self) -> &[Id] {
        match self {
            Self::Operand(_) | Self::Constant(_) => &[],
            Self::Apply(op, _, args) => args.get(..op.arity()).unwrap_or(args),
            Self::Cast(of) | Self::Lay(of, _) | Self::Fold(of, ..) => std::slice::from_ref(of),
        }
    }
}

/// A step: what it is, its type and its shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::by_name::program) struct Step {
    pub(in crate::by_name::program) kind: Kind,
    pub(in crate::by_name::program) dtype: DType,
    pub(in crate::by_name::program) shape: Vec<usize>,
}

/// Steps, each after those that it reads.
#[derive(Clone, Debug, Default)]
pub(in crate::by_name::program) struct Steps {
    steps: Vec<Step>,
    known: HashMap<Step, Id>,
}

/// What a formula gives: a derivative that is not there, or one that is 0, is no value.
pub(super) enum Written {
    Of(Id),
    Zero,
    Nothing,
}

impl Steps {
    pub(in crate::by_name::program) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(in crate::by_name::program) fn step(&self, id: Id) -> &Step {
        &self.steps[id.index()]
    }

    pub(in crate::by_name::program) fn shape(&self, id: Id) -> &[usize] {
        &self.step(id).shape
    }

    pub(in crate::by_name::program) fn dtype(&self, id: Id) -> DType {
        self.step(id).dtype
    }

    pub(in crate::by_name::program) fn args(&self, id: Id) -> &[Id] {
        self.step(id).kind.args()
    }

    /// How many elements a value has; shapes were checked when they were made.
    pub(in crate::by_name::program) fn elements(&self, id: Id) -> usize {
        self.shape(id).iter().product()
    }

    pub(super) fn push(&mut self, kind: Kind, dtype: DType, shape: Vec<usize>) -> Id {
        let step = Step { kind, dtype, shape };
        if let Some(&id) = self.known.get(&step) {
            return id;
        }
        // Never beyond `u32`: a program is a text, and each step of it a few here.
        let id = Id(u32::try_from(self.steps.len()).unwrap_or(u32::MAX));
        self.known.insert(step.clone(), id);
        self.steps.push(step);
        id
    }

    /// An operand of that number.
    pub(super) fn operand(&mut self, number: usize, dtype: DType, shape: &[usize]) -> Id {
        self.push(Kind::Operand(number), dtype, shape.to_vec())
    }

    /// A number everywhere in a shape.
    pub(super) fn number(&mut self, value: f64, dtype: DType, shape: &[usize]) -> Id {
        let bytes = match Value::new(&Scalar::Float(dtype, value)) {
            Value::Plain(bytes) => bytes,
            Value::Text(_) => Bytes::default(),
        };
        self.push(Kind::Constant(bytes), dtype, shape.to_vec())
    }

    /// A value with other axes.
    pub(super) fn lay(&mut self, of: Id, axes: &[Option<usize>], shape: Vec<usize>) -> Id {
        let own = self.step(of);
        // Axes of size 1 belong to no axis of the operand, so that equal values are equal steps.
        let axes: Vec<Option<usize>> =
            axes.iter().zip(&shape).map(|(&from, &size)| from.filter(|_| size != 1)).collect();
        let stays = |(to, from): (usize, &Option<usize>)| shape[to] == 1 || *from == Some(to);
        let same = shape == own.shape && axes.iter().enumerate().all(stays);
        let dtype = own.dtype;
        match own.kind.clone() {
            _ if same => of,
            Kind::Constant(bytes) => self.push(Kind::Constant(bytes), dtype, shape),
            Kind::Lay(below, inner) => {
                let through = |from: &Option<usize>| inner.get((*from)?).copied().flatten();
                let axes: Vec<_> = axes.iter().map(through).collect();
                self.lay(below, &axes, shape)
            }
            _ => self.push(Kind::Lay(of, axes), dtype, shape),
        }
    }

    /// A value repeated along the axes of a shape that has as many: those that have size 1 here.
    pub(super) fn repeated(&mut self, of: Id, shape: &[usize]) -> Id {
        let own = self.shape(of).iter().zip(shape).enumerate();
        let axes: Vec<_> = own.map(|(axis, (own, to))| (own == to).then_some(axis)).collect();
        self.lay(of, &axes, shape.to_vec())
    }

    /// A value of a type: itself, or converted.
    pub(super) fn cast(&mut self, of: Id, dtype: DType) -> Id {
        let own = self.step(of);
        if own.dtype == dtype {
            return of;
        }
        let (shape, kind) = (own.shape.clone(), own.kind.clone());
        match kind {
            // Where it is repeated, it is converted before.
            Kind::Lay(below, axes) => {
                let below = self.cast(below, dtype);
                self.lay(below, &axes, shape)
            }
            Kind::Constant(_) => {
                match self.written(&[of], &shape, dtype, |_, args| Slope::Of(args[0])) {
                    Ok(Written::Of(id)) => id,
                    _ => self.push(Kind::Cast(of), dtype, shape),
                }
            }
            _ => self.push(Kind::Cast(of), dtype, shape),
        }
    }

    /// An operation on arguments of one shape.
    pub(super) fn apply(
        &mut self,
        op: Op,
        compute: DType,
        args: &[Id],
        dtype: DType,
        shape: &[usize],
    ) -> Id {
        if let (Op::Multiply, &[a, b]) = (op, args) {
            match (self.is_one(a), self.is_one(b)) {
                (true, _) => return b,
                (_, true) => return a,
                _ => {}
            }
        }
        if let (Op::Negative, &[of]) = (op, args)
            && let Kind::Apply(Op::Negative, _, [inner, ..]) = self.step(of).kind
        {
            return inner;
        }
        // What all arguments are repeated along, the result is too: computed before.
        if let Some((axes, below)) = self.laid_alike(args) {
            let mut own = [Id(0); 3];
            for (own, &arg) in own.iter_mut().zip(args) {
                *own = match self.step(arg).kind {
                    Kind::Lay(of, _) => of,
                    Kind::Constant(bytes) => {
                        let dtype = self.dtype(arg);
                        self.push(Kind::Constant(bytes), dtype, below.clone())
                    }
                    _ => arg,
                };
            }
            let args = own.get(..args.len()).unwrap_or(&own).to_vec();
            let made = self.apply(op, compute, &args, dtype, &below);
            return self.lay(made, &axes, shape.to_vec());
        }
        let mut own = [Id(0); 3];
        own.iter_mut().zip(args).for_each(|(own, &arg)| *own = arg);
        self.push(Kind::Apply(op, compute, own), dtype, shape.to_vec())
    }

    fn is_one(&self, id: Id) -> bool {
        let step = self.step(id);
        let one = step.dtype.is_float().then(|| Value::new(&Scalar::Float(step.dtype, 1.0)));
        matches!((&step.kind, one), (Kind::Constant(own), Some(Value::Plain(one))) if *own == one)
    }

    /// The axes that all arguments are laid on, and the shape of what is laid, where they are laid alike.
    fn laid_alike(&self, args: &[Id]) -> Option<(Vec<Option<usize>>, Vec<usize>)> {
        let mut found: Option<(&Vec<Option<usize>>, &[usize])> = None;
        for &arg in args {
            let own = match &self.step(arg).kind {
                Kind::Constant(_) => continue,
                Kind::Lay(of, axes) => (axes, self.shape(*of)),
                _ => return None,
            };
            if *found.get_or_insert(own) != own {
                return None;
            }
        }
        found.map(|(axes, shape)| (axes.clone(), shape.to_vec()))
    }

    /// A reduction along the axes that are marked, of values of the type of the result.
    pub(super) fn fold(&mut self, of: Id, fold: Fold, mask: Vec<bool>) -> Id {
        let step = self.step(of);
        let dtype = step.dtype;
        let shape = step.shape.iter().zip(&mask).map(|(&size, &gone)| if gone { 1 } else { size });
        let shape = shape.collect();
        if !step.shape.iter().zip(&mask).any(|(&size, &gone)| gone && size != 1) {
            return of;
        }
        self.push(Kind::Fold(of, fold, mask), dtype, shape)
    }

    /// The sum along the axes that are marked, where factors that are the same all along them are multiplied after it.
    pub(super) fn sum(&mut self, of: Id, mask: &[bool]) -> Id {
        let own = self.shape(of).to_vec();
        if !own.iter().zip(mask).any(|(&size, &gone)| gone && size != 1) {
            return of;
        }
        let factors = &mut Vec::new();
        let rest = self.factored(of, mask, factors);
        let shape: Vec<usize> =
            own.iter().zip(mask).map(|(&size, &gone)| if gone { 1 } else { size }).collect();
        let dtype = self.dtype(of);
        let mut sum = match rest {
            Some(rest) => self.fold(rest, Fold::Sum, mask.to_vec()),
            None => {
                let gone = own.iter().zip(mask).filter(|(_, gone)| **gone);
                let count = gone.map(|(&size, _)| size).product::<usize>();
                self.number(count as f64, dtype, &shape)
            }
        };
        for (op, factor) in std::mem::take(factors) {
            let factor = factor.map(|factor| self.alone(factor, mask));
            let args: Vec<Id> = [Some(sum), factor].into_iter().flatten().collect();
            sum = self.computed(op, dtype, &args, &shape);
        }
        sum
    }

    /// An operation on floats, of numbers at once.
    pub(super) fn computed(&mut self, op: Op, dtype: DType, args: &[Id], shape: &[usize]) -> Id {
        if args.iter().all(|&arg| matches!(self.step(arg).kind, Kind::Constant(_))) {
            let made = self
                .written(args, shape, dtype, |formula, args| Slope::Of(formula.apply(op, args)));
            if let Ok(Written::Of(id)) = made {
                return id;
            }
        }
        self.apply(op, dtype, args, dtype, shape)
    }

    /// Takes from a value what is the same all along the axes that are marked: what is left, if anything is.
    fn factored(
        &mut self,
        of: Id,
        mask: &[bool],
        factors: &mut Vec<(Op, Option<Id>)>,
    ) -> Option<Id> {
        if self.is_repeated(of, mask) {
            factors.push((Op::Multiply, Some(of)));
            return None;
        }
        let (dtype, shape) = (self.dtype(of), self.shape(of).to_vec());
        match self.step(of).kind {
            Kind::Apply(Op::Multiply, _, [a, b, _]) => {
                let (a, b) = (self.factored(a, mask, factors), self.factored(b, mask, factors));
                match (a, b) {
                    (Some(a), Some(b)) => {
                        Some(self.apply(Op::Multiply, dtype, &[a, b], dtype, &shape))
                    }
                    (one, None) | (None, one) => one,
                }
            }
            Kind::Apply(Op::Divide, _, [a, b, _]) if self.is_repeated(b, mask) => {
                let rest = self.factored(a, mask, factors);
                factors.push((Op::Divide, Some(b)));
                rest
            }
            Kind::Apply(Op::Negative, _, [a, ..]) => {
                let rest = self.factored(a, mask, factors);
                factors.push((Op::Negative, None));
                rest
            }
            _ => Some(of),
        }
    }

    /// Whether a value is the same all along the axes that are marked.
    fn is_repeated(&self, of: Id, mask: &[bool]) -> bool {
        let step = self.step(of);
        match &step.kind {
            Kind::Constant(_) => true,
            Kind::Lay(_, axes) => {
                let marked = axes.iter().zip(&step.shape).zip(mask).filter(|(_, gone)| **gone);
                marked.into_iter().all(|((axis, &size), _)| axis.is_none() || size == 1)
            }
            _ => false,
        }
    }

    /// A value that is the same all along the axes that are marked, with size 1 there.
    fn alone(&mut self, of: Id, mask: &[bool]) -> Id {
        let step = self.step(of);
        let shape: Vec<usize> =
            step.shape.iter().zip(mask).map(|(&size, &gone)| if gone { 1 } else { size }).collect();
        let dtype = step.dtype;
        match step.kind.clone() {
            Kind::Constant(bytes) => self.push(Kind::Constant(bytes), dtype, shape),
            Kind::Lay(below, axes) => self.lay(below, &axes, shape),
            _ => of,
        }
    }

    /// The steps of a formula over some values of one shape, as values of a type.
    pub(super) fn written(
        &mut self,
        args: &[Id],
        shape: &[usize],
        dtype: DType,
        write: impl for<'b> FnOnce(&'b Formula<'_>, &[Term<'b>]) -> Slope<'b>,
    ) -> Result<Written, TypeError> {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let mut build = Builder::new(Promotion::Numpy);
        let nodes: Vec<Node> = args
            .iter()
            .zip(NAMES)
            .map(|(&arg, name)| match self.step(arg).kind {
                Kind::Constant(bytes) => build.number(bytes, self.dtype(arg)),
                _ => build.operand(name, self.dtype(arg)),
            })
            .collect();
        let formula = Formula::new(&mut build);
        let terms: Vec<Term<'_>> = nodes.iter().map(|&node| formula.term(node)).collect();
        let node = match write(&formula, &terms) {
            Slope::Of(term) => term.node,
            Slope::Zero | Slope::Decides => return Ok(Written::Zero),
            Slope::Nothing => return Ok(Written::Nothing),
        };
        let root = formula.finish(node)?;
        let root = build.cast(root, dtype)?;
        // Each step of the formula as one of these, where it is read.
        let graph = build.graph();
        let mut wanted = vec![false; graph.steps.len()];
        wanted[root.index()] = true;
        mark(graph, root.index(), &mut wanted);
        let mut made = vec![Id(0); graph.steps.len()];
        for at in (0..graph.steps.len()).filter(|&at| wanted[at]) {
            let step = &graph.steps[at];
            let own = step.dtype();
            made[at] = match &step.kind {
                graph::Kind::Operand(_) => {
                    let place = nodes.iter().position(|node| node.index() == at).unwrap_or(0);
                    args[place]
                }
                graph::Kind::Constant(Value::Plain(bytes)) => {
                    self.push(Kind::Constant(*bytes), own, shape.to_vec())
                }
                graph::Kind::Apply(op, compute, nodes) => {
                    let nodes = nodes.iter().take(op.arity());
                    let args: Vec<Id> = nodes.map(|node| made[node.index()]).collect();
                    self.apply(*op, *compute, &args, own, shape)
                }
                graph::Kind::Cast(of) => self.cast(made[of.index()], own),
                // Never: a formula has no others.
                _ => return Ok(Written::Nothing),
            };
        }
        Ok(Written::Of(made[root.index()]))
    }
}

/// Marks what a step reads, and what that reads.
fn mark(graph: &graph::Graph, at: usize, wanted: &mut [bool]) {
    let mut open = vec![at];
    while let Some(at) = open.pop() {
        for arg in graph.steps[at].kind.args() {
            if !std::mem::replace(&mut wanted[arg.index()], true) {
                open.push(arg.index());
            }
        }
    }
}
