//! Reverse mode: from the gradient of results to the gradients of what they were computed of.
//!
//! The steps are walked from the last to the first. A step whose gradient is known hands each of its arguments a part:
//!
//! | step | an argument's part of the gradient `g` |
//! |---|---|
//! | an operation | its [slope](crate::by_name::slope) |
//! | a conversion | `g`, converted back |
//! | a value that is repeated | the sum of `g` over the axes along which it is |
//! | `sum`, `mean` | `g` everywhere; divided by the number of elements |
//! | `max`, `min` | `g` where the element is the result, shared by those that are; NaN is NaN's |
//! | `prod` | `g` times the product of all others, also where some are 0 |
//!
//! What is added up is one value for each step, so that common parts are computed once. Gradients of 16-bit floats are
//! computed in 32 bits and rounded at the end.

use super::steps::{Id, Kind, Steps, Written};
use crate::by_name::formula::{Term, choose};
use crate::by_name::program::build::builder::widened;
use crate::by_name::program::front::axes::Fold;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::slope::{Slope, slope};
use simulcast_kernels::dtype::DType;
use simulcast_kernels::op::Op;

/// The gradients of some steps, each in its shape and type: of results, whose own gradients are given.
pub(super) fn pull(
    steps: &mut Steps,
    results: &[(Id, Id)],
    wrt: &[Id],
) -> Result<Vec<Id>, ProgramError> {
    let count = steps.len();
    let mut reverse = Reverse { needs: needs(steps, wrt), gradients: vec![None; count], steps };
    for &(result, gradient) in results {
        reverse.add(result, gradient);
    }
    let last = results.iter().map(|(result, _)| result.index()).max();
    for at in (0..=last.unwrap_or(0)).rev() {
        if let (true, Some(gradient)) = (reverse.needs[at], reverse.gradients[at]) {
            reverse.step(Id(at as u32), gradient)?;
        }
    }
    let gradients = reverse.gradients;
    let own = wrt.iter().map(|&id| {
        let (dtype, shape) = (steps.dtype(id), steps.shape(id).to_vec());
        match gradients.get(id.index()).copied().flatten() {
            Some(gradient) => steps.cast(gradient, dtype),
            None => steps.number(0.0, dtype, &shape),
        }
    });
    Ok(own.collect())
}

/// Which steps are floats that depend on some of them.
fn needs(steps: &Steps, wrt: &[Id]) -> Vec<bool> {
    let mut needs = vec![false; steps.len()];
    for at in 0..needs.len() {
        let id = Id(at as u32);
        let float = steps.dtype(id).is_float();
        needs[at] =
            float && (wrt.contains(&id) || steps.args(id).iter().any(|arg| needs[arg.index()]));
    }
    needs
}

struct Reverse<'s> {
    steps: &'s mut Steps,
    /// Which steps a gradient is wanted of.
    needs: Vec<bool>,
    gradients: Vec<Option<Id>>,
}

impl Reverse<'_> {
    /// Adds a part to a step's gradient.
    fn add(&mut self, to: Id, part: Id) {
        let (dtype, shape) = (widened(self.steps.dtype(to)), self.steps.shape(to).to_vec());
        let part = self.steps.cast(part, dtype);
        let sum = match self.gradients[to.index()] {
            Some(before) => self.steps.computed(Op::Add, dtype, &[before, part], &shape),
            None => part,
        };
        self.gradients[to.index()] = Some(sum);
    }

    fn needed(&self, id: Id) -> bool {
        self.needs[id.index()]
    }

    /// Hands the gradient of a step to its arguments.
    fn step(&mut self, id: Id, gradient: Id) -> Result<(), ProgramError> {
        match self.steps.step(id).kind.clone() {
            Kind::Operand(_) | Kind::Constant(_) => {}
            Kind::Cast(of) => {
                if self.needed(of) {
                    self.add(of, gradient);
                }
            }
            Kind::Lay(of, axes) => {
                if self.needed(of) {
                    let part = self.unlaid(of, &axes, gradient);
                    self.add(of, part);
                }
            }
            Kind::Apply(op, _, args) => {
                for at in 0..op.arity() {
                    if self.needed(args[at]) {
                        self.operation(op, &args[..op.arity()], at, gradient)?;
                    }
                }
            }
            Kind::Fold(of, fold, mask) => {
                if self.needed(of) {
                    self.fold(id, of, fold, &mask, gradient)?;
                }
            }
        }
        Ok(())
    }

    fn operation(
        &mut self,
        op: Op,
        args: &[Id],
        at: usize,
        gradient: Id,
    ) -> Result<(), ProgramError> {
        let shape = self.steps.shape(gradient).to_vec();
        let mut all: Vec<Id> = args.to_vec();
        for own in &mut all {
            let dtype = widened(self.steps.dtype(*own));
            *own = self.steps.cast(*own, dtype);
        }
        let dtype = self.steps.dtype(all[at]);
        all.push(gradient);
        let part =
            self.steps.written(&all, &shape, dtype, |_, terms| match terms.split_last() {
                Some((&gradient, args)) => slope(op, args, gradient, at),
                None => Slope::Nothing,
            })?;
        match part {
            Written::Of(part) => self.add(args[at], part),
            Written::Zero => {}
            Written::Nothing => {
                let dtypes = args.iter().map(|&arg| self.steps.dtype(arg)).collect();
                let kind = ProgramErrorKind::NoDerivative { name: op.name(), dtypes };
                return Err(ProgramError::new(kind, 0..0));
            }
        }
        Ok(())
    }

    /// The gradient of a value that was laid on other axes.
    fn unlaid(&mut self, of: Id, axes: &[Option<usize>], gradient: Id) -> Id {
        let shape = self.steps.shape(gradient).to_vec();
        let mask: Vec<bool> =
            axes.iter().zip(&shape).map(|(axis, &size)| axis.is_none() && size != 1).collect();
        let sum = self.steps.sum(gradient, &mask);
        let own = self.steps.shape(of).to_vec();
        let back = (0..own.len()).map(|axis| axes.iter().position(|&from| from == Some(axis)));
        self.steps.lay(sum, &back.collect::<Vec<_>>(), own)
    }

    fn fold(
        &mut self,
        id: Id,
        of: Id,
        fold: Fold,
        mask: &[bool],
        gradient: Id,
    ) -> Result<(), ProgramError> {
        let shape = self.steps.shape(of).to_vec();
        let wide = widened(self.steps.dtype(of));
        let less = self.steps.shape(gradient).to_vec();
        let number = |number: f64, steps: &mut Steps| steps.number(number, wide, &less);
        let part = match fold {
            Fold::Sum => gradient,
            Fold::Mean => {
                let gone = shape.iter().zip(mask).filter(|(_, gone)| **gone);
                let count = gone.map(|(&size, _)| size).product::<usize>();
                let count = number(count as f64, self.steps);
                self.steps.computed(Op::Divide, wide, &[gradient, count], &less)
            }
            Fold::Maximum | Fold::Minimum => {
                let (element, value) = (self.steps.cast(of, wide), self.steps.cast(id, wide));
                let value = self.steps.repeated(value, &shape);
                let is_it = self.write(&[element, value], &shape, |args| {
                    let (element, value) = (args[0], args[1]);
                    let both = element.isnan().logical_and(value.isnan());
                    choose(element.equal(value).logical_or(both), 1.0, 0.0)
                })?;
                let ties = self.steps.fold(is_it, Fold::Sum, mask.to_vec());
                let each = self.steps.computed(Op::Divide, wide, &[gradient, ties], &less);
                let each = self.steps.repeated(each, &shape);
                let part = self.steps.computed(Op::Multiply, wide, &[is_it, each], &shape);
                self.add(of, part);
                return Ok(());
            }
            Fold::Product => {
                let element = self.steps.cast(of, wide);
                let is_zero =
                    self.write(&[element], &shape, |args| choose(args[0].equal(0.0), 1.0, 0.0))?;
                let zeros = self.steps.fold(is_zero, Fold::Sum, mask.to_vec());
                let others = self
                    .write(&[element], &shape, |args| choose(args[0].equal(0.0), 1.0, args[0]))?;
                let product = self.steps.fold(others, Fold::Product, mask.to_vec());
                let all = [product, zeros, gradient].map(|id| self.steps.repeated(id, &shape));
                let part = self.write(&[element, all[0], all[1], all[2]], &shape, |args| {
                    let (element, product, zeros, gradient) = (args[0], args[1], args[2], args[3]);
                    // Of one 0 the product of the others is left, of more nothing is.
                    let rest = choose(element.equal(0.0), product, 0.0);
                    let rest = choose(zeros.equal(1.0), rest, 0.0);
                    gradient * choose(zeros.equal(0.0), product / element, rest)
                })?;
                self.add(of, part);
                return Ok(());
            }
        };
        let part = self.steps.repeated(part, &shape);
        self.add(of, part);
        Ok(())
    }

    /// The value of a formula over values of one shape and one float type.
    fn write(
        &mut self,
        args: &[Id],
        shape: &[usize],
        write: impl for<'b> FnOnce(&[Term<'b>]) -> Term<'b>,
    ) -> Result<Id, ProgramError> {
        let dtype = args.first().map_or(DType::F64, |&arg| self.steps.dtype(arg));
        match self.steps.written(args, shape, dtype, |_, args| Slope::Of(write(args)))? {
            Written::Of(id) => Ok(id),
            // Never: a formula has a value.
            _ => Err(ProgramError::new(ProgramErrorKind::Unsupported("this".into()), 0..0)),
        }
    }
}

/// Whether an operation on these types has a derivative by its operand `at`; 0 is one.
pub(super) fn has_slope(op: Op, dtypes: &[DType], at: usize) -> bool {
    let mut steps = Steps::default();
    let mut args: Vec<Id> = dtypes
        .iter()
        .enumerate()
        .map(|(number, &dtype)| steps.operand(number, widened(dtype), &[]))
        .collect();
    let Some(&dtype) = dtypes.get(at) else { return false };
    args.push(steps.operand(dtypes.len(), widened(dtype), &[]));
    let written = steps.written(&args, &[], widened(dtype), |_, terms| match terms.split_last() {
        Some((&gradient, args)) => slope(op, args, gradient, at),
        None => Slope::Nothing,
    });
    matches!(written, Ok(Written::Of(_) | Written::Zero))
}
