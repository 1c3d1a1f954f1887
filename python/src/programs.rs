//! Programs of expressions: made once for the types of their operands, and kept.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use simulcast::program::{Builder, Expr, ExprKind};
use simulcast::types::{Casting, Literal, OperandType, Promotion, can_cast};
use simulcast::{DType, Op, ProgramError, TypedProgram};

use crate::cuda;
use crate::functions::name_of;

/// So many programs of an expression are kept, and so many expressions that were not compiled.
pub(crate) const KEPT: usize = 64;

/// A program, and what else has to be looked at before it runs.
pub(crate) struct Compiled {
    pub(crate) program: TypedProgram,
    /// The type of the expression, before it is cast.
    pub(crate) natural: DType,
    /// The exponents of powers of integers, which must not be negative.
    pub(crate) exponents: Vec<TypedProgram>,
    /// The program on the devices that it ran on.
    pub(crate) on_devices: cuda::Programs,
}

/// What a program depends on for each name of its expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// No operand has the name: it is that of a constant.
    Absent,
    Array(DType),
    /// The bits of a number, which stands in the program.
    Number([u64; 3]),
}

impl From<OperandType> for Part {
    fn from(own: OperandType) -> Self {
        match own {
            OperandType::Array(dtype) => Self::Array(dtype),
            OperandType::Literal(Literal::Bool(value)) => Self::Number([0, value.into(), 0]),
            #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
            #[expect(clippy::cast_sign_loss, reason = "bits are kept")]
            OperandType::Literal(Literal::Int(value)) => {
                Self::Number([1, value as u64, (value >> 64) as u64])
            }
            OperandType::Literal(Literal::Float(value)) => Self::Number([2, value.to_bits(), 0]),
            OperandType::Literal(Literal::Complex(value)) => {
                Self::Number([3, value.re.to_bits(), value.im.to_bits()])
            }
        }
    }
}

/// The programs of one expression that were made. They are few, so that they are found faster than a
/// hash is made.
#[derive(Default)]
pub(crate) struct Programs(Mutex<Vec<Kept>>);

/// One of them, and what it was made for.
struct Kept {
    parts: Vec<Part>,
    /// The type that was asked for.
    dtype: Option<DType>,
    compiled: Arc<Compiled>,
}

impl Programs {
    /// The program that was made for these.
    #[inline]
    pub(crate) fn known(&self, parts: &[Part], dtype: Option<DType>) -> Option<Arc<Compiled>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find(|own| own.parts == parts && own.dtype == dtype);
        known.map(|own| Arc::clone(&own.compiled))
    }

    /// The program for these types, made where it is not kept. `asked` is the argument that asks for the type.
    pub(crate) fn find(
        &self,
        source: &Source<'_>,
        parts: Vec<Part>,
        dtype: Option<DType>,
        casting: Casting,
        asked: &str,
        fail: &impl Fn(ProgramError) -> PyErr,
    ) -> PyResult<Arc<Compiled>> {
        let compiled = match self.known(&parts, dtype) {
            Some(compiled) => compiled,
            None => {
                let compiled = Arc::new(made(source, dtype, fail)?);
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.push(Kept { parts, dtype, compiled: Arc::clone(&compiled) });
                compiled
            }
        };
        let natural = compiled.natural;
        match dtype {
            Some(dtype) if !can_cast(natural, dtype, casting) => {
                Err(PyTypeError::new_err(format!(
                    "argument '{asked}' is {dtype}, to which the result, {natural}, is not cast under casting '{}'",
                    name_of(casting)
                )))
            }
            _ => Ok(compiled),
        }
    }
}

/// What a program is made of.
pub(crate) struct Source<'a> {
    pub(crate) expr: &'a Expr,
    /// The numbers that already stand in the expression.
    pub(crate) numbers: &'a [(&'a str, Literal)],
    pub(crate) typed: &'a [(&'a str, DType)],
    pub(crate) fast_math: bool,
}

fn made(
    source: &Source<'_>,
    dtype: Option<DType>,
    fail: &impl Fn(ProgramError) -> PyErr,
) -> PyResult<Compiled> {
    let &Source { expr, numbers, typed, fast_math } = source;
    let mut builder = Builder::new(Promotion::Numpy);
    builder.fast_math(fast_math);
    let mut root = expr.lower(&mut builder, typed).map_err(fail)?;
    let natural = match builder.type_of(root) {
        OperandType::Array(natural) => natural,
        // A number on its own: what NumPy makes of it.
        OperandType::Literal(_) => expr.compile(typed, Promotion::Numpy).map_err(fail)?.dtype(),
    };
    if let Some(dtype) = dtype
        && dtype != natural
        && natural != DType::String
    {
        root = builder.cast(root, dtype).map_err(|error| fail(error.into()))?;
    }
    let program = builder.finish(root).map_err(fail)?;
    let (exponents, on_devices) = (exponents(expr, numbers, typed), cuda::Programs::default());
    Ok(Compiled { program, natural, exponents, on_devices })
}

/// Programs for the exponents of powers of integers, each a part of the text.
pub(crate) fn exponents(
    expr: &Expr,
    numbers: &[(&str, Literal)],
    typed: &[(&str, DType)],
) -> Vec<TypedProgram> {
    let part = |span: &std::ops::Range<usize>| {
        let text = expr.text().get(span.clone())?;
        Expr::parse(text).ok()?.with_numbers(numbers).compile(typed, Promotion::Numpy).ok()
    };
    let mut found = Vec::new();
    for node in expr.nodes() {
        if let ExprKind::Apply(Op::Power, args) = &node.kind
            && let &[_, exponent] = args.as_slice()
            && part(&node.span).is_some_and(|power| power.dtype().is_integer())
            && let Some(exponent) = expr.node(exponent).and_then(|own| part(&own.span))
        {
            found.push(exponent);
        }
    }
    found
}
