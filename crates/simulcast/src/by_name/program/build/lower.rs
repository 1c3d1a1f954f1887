//! From expressions to programs: each node as calls of the [`Builder`], which decides the types.

use std::collections::BTreeMap;

use crate::by_name::compose;
use crate::by_name::program::TypedProgram;
use crate::by_name::program::build::builder::Builder;
use crate::by_name::program::build::graph::Node;
use crate::by_name::program::front::builtins::nearest;
use crate::by_name::program::front::error::{ProgramError, ProgramErrorKind};
use crate::by_name::program::front::expr::{Expr, ExprKind, constant};
use crate::by_name::types::{Literal, OperandType, Promotion, TypeError, literal_as};
use simulcast_kernels::dtype::{Complex, DType, Scalar};
use simulcast_kernels::op::Op;

impl Expr {
    /// The program that computes it, for operands of these names and types; it takes them in this
    /// order, those too that the expression does not name.
    ///
    /// # Errors
    ///
    /// Names that no operand has, and types that do not go together, with their place in the text.
    pub fn compile(
        &self,
        operands: &[(&str, DType)],
        promotion: Promotion,
    ) -> Result<TypedProgram, ProgramError> {
        let mut builder = Builder::new(promotion);
        let root = self.lower(&mut builder, operands)?;
        builder.finish(root)
    }

    /// Builds the expression; its value.
    ///
    /// # Errors
    ///
    /// As [`Expr::compile`].
    pub fn lower(
        &self,
        builder: &mut Builder,
        operands: &[(&str, DType)],
    ) -> Result<Node, ProgramError> {
        let (nodes, failed) = lowered(self, builder, operands);
        match (failed, nodes.last()) {
            (Some(error), _) => Err(error),
            (None, Some(&root)) => Ok(root),
            // Never: a text that was read has a node.
            (None, None) => {
                Err(ProgramError::new(ProgramErrorKind::Unsupported("nothing".into()), 0..0))
            }
        }
    }

    /// The type of each node, for operands of these names and types, up to the first whose operands do
    /// not go together.
    ///
    /// ```
    /// use simulcast::DType;
    /// use simulcast::program::Expr;
    /// use simulcast::types::{Literal, OperandType, Promotion};
    ///
    /// let types = Expr::parse("x / 2")?.types(&[("x", DType::I32)], Promotion::Numpy);
    /// let two = OperandType::Literal(Literal::Int(2));
    /// assert_eq!(types, [DType::I32.into(), two, DType::F64.into()]);
    /// # Ok::<(), simulcast::program::SyntaxError>(())
    /// ```
    #[must_use]
    pub fn types(&self, operands: &[(&str, DType)], promotion: Promotion) -> Vec<OperandType> {
        let mut builder = Builder::new(promotion);
        let (nodes, _) = lowered(self, &mut builder, operands);
        nodes.into_iter().map(|node| builder.type_of(node)).collect()
    }
}

/// The value of each node, up to the first error.
pub(in crate::by_name::program) fn lowered(
    expr: &Expr,
    builder: &mut Builder,
    operands: &[(&str, DType)],
) -> (Vec<Node>, Option<ProgramError>) {
    builder.at(0..0);
    for &(name, dtype) in operands {
        builder.operand(name, dtype);
    }
    let declared: BTreeMap<&str, DType> = operands.iter().copied().collect();
    let mut nodes: Vec<Node> = Vec::with_capacity(expr.nodes().len());
    for node in expr.nodes() {
        builder.at(node.span.clone());
        let args: Vec<Node> =
            node.kind.children().iter().filter_map(|id| nodes.get(id.index()).copied()).collect();
        match one(&node.kind, &args, builder, &declared) {
            Ok(made) => nodes.push(made),
            Err(kind) => return (nodes, Some(ProgramError::new(kind, node.span.clone()))),
        }
    }
    (nodes, None)
}

fn one(
    kind: &ExprKind,
    args: &[Node],
    builder: &mut Builder,
    operands: &BTreeMap<&str, DType>,
) -> Result<Node, ProgramErrorKind> {
    let made = match (kind, args) {
        (ExprKind::Literal(literal), _) => Ok(builder.literal(*literal)),
        (ExprKind::Text(text), _) => Ok(builder.constant(Scalar::String(text.clone()))),
        (ExprKind::Name(name), _) => match (operands.get(name.as_str()), constant(name)) {
            (Some(&dtype), _) => Ok(builder.operand(name, dtype)),
            (None, Some(literal)) => Ok(builder.literal(literal)),
            (None, None) => {
                let mut names: Vec<&str> = operands.keys().copied().collect();
                names.sort_unstable();
                let near = nearest(name, names.into_iter());
                let (name, near) = (name.clone(), near.map(String::from));
                return Err(ProgramErrorKind::Unknown { name, near });
            }
        },
        (ExprKind::Apply(op, _), [first, second, rest @ ..]) if op.arity() == 2 => {
            let text = OperandType::Array(DType::String);
            let texts = [first, second].into_iter().any(|own| builder.type_of(*own) == text);
            // As in Python, `+` joins text; with a number it is refused as that.
            let op = if *op == Op::Add && texts { Op::Concat } else { *op };
            let joined = builder.apply(op, &[*first, *second]);
            rest.iter().fold(joined, |joined, next| builder.apply(op, &[joined?, *next]))
        }
        (ExprKind::Apply(op, _), args) => builder.apply(*op, args),
        (ExprKind::Compare(_, rest), args) => {
            compared(rest.iter().map(|(op, _)| *op), args, builder)
        }
        (ExprKind::If(..), &[yes, condition, no]) => {
            match [condition, yes, no].map(|own| builder.type_of(own)) {
                // Of numbers Python takes one as it is.
                [
                    OperandType::Literal(condition),
                    OperandType::Literal(_),
                    OperandType::Literal(_),
                ] => Ok(if condition.truth() { yes } else { no }),
                _ => builder.apply(Op::Where, &[condition, yes, no]),
            }
        }
        (ExprKind::Clip(..), &[of, low, high]) => clipped(of, low, high, builder),
        (ExprKind::Round(_, decimals), &[of]) => rounded(of, *decimals, builder),
        (ExprKind::Cast(dtype, _), &[of]) => builder.cast(of, *dtype),
        (ExprKind::Index(_, pattern), &[of]) => Ok(builder.insert_axes(of, pattern)),
        (ExprKind::Transpose(_, axes), &[of]) => Ok(builder.transpose(of, axes.as_deref())),
        (ExprKind::Reduce { fold, axes, keepdims, .. }, &[of]) => {
            builder.reduce(*fold, of, axes.as_deref(), *keepdims)
        }
        // Never: a node's operands come before it.
        _ => return Err(ProgramErrorKind::Unsupported("an operand that is not there".into())),
    };
    made.map_err(|error| ProgramErrorKind::Type(Box::new(error)))
}

/// A value within bounds. As in NumPy, integers that the value's type does not reach bind nothing.
fn clipped(of: Node, low: Node, high: Node, builder: &mut Builder) -> Result<Node, TypeError> {
    let dtype = match builder.type_of(of) {
        OperandType::Array(dtype) if dtype.is_integer() => Some(dtype),
        _ => None,
    };
    let binds = |bound: Node, outwards: i128| match (builder.type_of(bound), dtype) {
        (OperandType::Literal(literal @ Literal::Int(value)), Some(dtype)) => {
            value.signum() != outwards || literal_as(literal, dtype).is_ok()
        }
        _ => true,
    };
    let (low, high) = (Some(low).filter(|_| binds(low, -1)), Some(high).filter(|_| binds(high, 1)));
    compose::clip(builder, of, low, high)
}

/// A value rounded to decimals by NumPy's steps; each part of a complex number by itself.
fn rounded(of: Node, decimals: isize, builder: &mut Builder) -> Result<Node, TypeError> {
    let dtype = match builder.type_of(of) {
        OperandType::Array(dtype) => dtype,
        OperandType::Literal(Literal::Int(_)) => DType::I64,
        OperandType::Literal(Literal::Complex(_)) => DType::C128,
        OperandType::Literal(_) => DType::F64,
    };
    if !dtype.is_complex() {
        return rounded_real(of, dtype, decimals, builder);
    }
    // What each part is off by; the difference is exact, since a number and what it is rounded to are near, or one is 0.
    let part = if dtype == DType::C64 { DType::F32 } else { DType::F64 };
    let mut made = of;
    for (op, unit) in [(Op::Real, None), (Op::Imag, Some(Complex::new(0.0, 1.0)))] {
        let own = builder.apply(op, &[of])?;
        let near = rounded_real(own, part, decimals, builder)?;
        let off = builder.apply(Op::Subtract, &[own, near])?;
        let finite = builder.apply(Op::Isfinite, &[off])?;
        let zero = builder.literal(Literal::Float(0.0));
        let off = builder.apply(Op::Where, &[finite, off, zero])?;
        let mut off = builder.cast(off, dtype)?;
        if let Some(unit) = unit {
            let unit = builder.literal(Literal::Complex(unit));
            off = builder.apply(Op::Multiply, &[off, unit])?;
        }
        made = builder.apply(Op::Subtract, &[made, off])?;
    }
    Ok(made)
}

/// A real number scaled by a power of ten, rounded to integers, scaled back. Before the decimal point integers go through
/// float64.
fn rounded_real(
    of: Node,
    dtype: DType,
    decimals: isize,
    builder: &mut Builder,
) -> Result<Node, TypeError> {
    let is_integer = dtype.is_integer();
    let (there, back) = match decimals > 0 {
        true if is_integer => return Ok(of),
        true => (Op::Multiply, Op::Divide),
        false => (Op::Divide, Op::Multiply),
    };
    let scale = builder.literal(Literal::Float(power_of_ten(decimals.unsigned_abs())));
    let mut scaled = builder.apply(there, &[of, scale])?;
    if matches!(dtype, DType::F16 | DType::Bf16) {
        // It is computed in 32 bits, and NumPy's functions round after each step.
        let wide = builder.cast(scaled, DType::F32)?;
        scaled = builder.cast(wide, dtype)?;
    }
    let whole = builder.apply(Op::Round, &[scaled])?;
    let made = builder.apply(back, &[whole, scale])?;
    if is_integer { builder.cast(made, dtype) } else { Ok(made) }
}

/// A power of ten, by the multiplications of NumPy's `round`.
fn power_of_ten(exponent: usize) -> f64 {
    // Any more and it stays infinite.
    (0..exponent.min(400)).fold(1.0, |power, _| power * 10.0)
}

/// Every two neighbours compared, and all of them true.
fn compared(
    ops: impl Iterator<Item = Op>,
    args: &[Node],
    builder: &mut Builder,
) -> Result<Node, TypeError> {
    let mut all: Option<Node> = None;
    for (op, pair) in ops.zip(args.windows(2)) {
        let one = builder.apply(op, pair)?;
        all = Some(match all {
            Some(all) => builder.apply(Op::LogicalAnd, &[all, one])?,
            None => one,
        });
    }
    Ok(all.unwrap_or_else(|| builder.literal(Literal::Bool(true))))
}
