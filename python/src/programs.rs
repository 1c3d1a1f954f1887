//! Programs of expressions: made once for the types of their operands, and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use simulcast::{
    Builder, Casting, DType, Expr, ExprKind, Literal, Op, Program, ProgramError, Promotion, Type,
    can_cast,
};

use crate::functions::name_of;
use crate::operands::Operand;

/// So many programs of an expression are kept, and so many expressions that were not compiled.
pub(crate) const KEPT: usize = 64;

/// A program, and what else has to be looked at before it runs.
pub(crate) struct Compiled {
    pub(crate) program: Program,
    /// The type of the expression, before it is cast.
    natural: DType,
    /// The exponents of powers of integers, which must not be negative.
    pub(crate) exponents: Vec<Program>,
}

/// What a program was made for: the type of each operand, or the bits of a number, and the result's.
pub(crate) type Key = (Vec<Result<DType, [u64; 3]>>, Option<DType>);

/// What a program depends on.
pub(crate) fn part(operand: &Operand<'_>) -> Result<DType, [u64; 3]> {
    match operand.is() {
        Type::Array(dtype) => Ok(dtype),
        Type::Literal(Literal::Bool(value)) => Err([0, value.into(), 0]),
        #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
        #[expect(clippy::cast_sign_loss, reason = "bits are kept")]
        Type::Literal(Literal::Int(value)) => Err([1, value as u64, (value >> 64) as u64]),
        Type::Literal(Literal::Float(value)) => Err([2, value.to_bits(), 0]),
        Type::Literal(Literal::Complex(value)) => Err([3, value.re.to_bits(), value.im.to_bits()]),
    }
}

/// The programs of one expression that were made.
#[derive(Default)]
pub(crate) struct Programs(Mutex<HashMap<Key, Arc<Compiled>>>);

impl Programs {
    /// The program for these types, made where it is not kept.
    pub(crate) fn find(
        &self,
        expr: &Expr,
        numbers: &[(&str, Literal)],
        typed: &[(&str, DType)],
        (key, casting): (Key, Casting),
        fail: &impl Fn(ProgramError) -> PyErr,
    ) -> PyResult<Arc<Compiled>> {
        let dtype = key.1;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let compiled = match known {
            Some(compiled) => compiled,
            None => {
                let compiled = Arc::new(made(expr, numbers, typed, dtype, fail)?);
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(key, Arc::clone(&compiled));
                compiled
            }
        };
        let natural = compiled.natural;
        match dtype {
            Some(dtype) if !can_cast(natural, dtype, casting) => {
                Err(PyTypeError::new_err(format!(
                    "the result is {natural}, which is not cast to {dtype} under casting {:?}",
                    name_of(casting)
                )))
            }
            _ => Ok(compiled),
        }
    }
}

fn made(
    expr: &Expr,
    numbers: &[(&str, Literal)],
    typed: &[(&str, DType)],
    dtype: Option<DType>,
    fail: &impl Fn(ProgramError) -> PyErr,
) -> PyResult<Compiled> {
    let mut builder = Builder::new(Promotion::Numpy);
    let mut root = expr.lower(&mut builder, typed).map_err(fail)?;
    let natural = match builder.type_of(root) {
        Type::Array(natural) => natural,
        // A number on its own: what NumPy makes of it.
        Type::Literal(_) => expr.compile(typed, Promotion::Numpy).map_err(fail)?.dtype(),
    };
    if let Some(dtype) = dtype
        && dtype != natural
        && natural != DType::String
    {
        root = builder.cast(root, dtype).map_err(|error| fail(error.into()))?;
    }
    let program = builder.finish(root).map_err(fail)?;
    Ok(Compiled { program, natural, exponents: exponents(expr, numbers, typed) })
}

/// Programs for the exponents of powers of integers, each a part of the text.
fn exponents(expr: &Expr, numbers: &[(&str, Literal)], typed: &[(&str, DType)]) -> Vec<Program> {
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
