//! A node as the code for its operator sees it: attributes with their defaults, inputs as values.

use simulcast::program::{Builder, Node, Run};
use simulcast::types::{Promotion, TypeError};
use simulcast::{AnyArray, AnyView, AnyViewMut, DType, TypedProgram};
use simulcast_core::{Names, Rule, resolve};

use super::error::NodeError;
use super::value::{Value, dtype};
use crate::model::{Attribute, AttributeValue};
use crate::operators::Row;
use crate::{ElementType, Tensor};

/// A node: its operator, and what its attributes are once functions have been called.
#[derive(Clone, Debug)]
pub(crate) struct RunNode {
    /// The node, with the names of what is around it.
    pub(crate) node: String,
    pub(crate) op: String,
    /// Its row in the table of operators.
    pub(crate) row: Option<&'static Row>,
    /// The version of the operator's domain.
    pub(crate) opset: i64,
    pub(crate) attributes: Vec<Attribute>,
    /// The names of the inputs.
    pub(crate) inputs: Names,
    /// The types of the inputs that a run holds as codes.
    pub(crate) codes: Vec<Option<ElementType>>,
    /// Which outputs are asked for.
    pub(crate) outputs: Vec<bool>,
}

impl RunNode {
    pub(crate) fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|found| &found.value)
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            AttributeValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name).map_or(default, |value| value != 0)
    }

    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name)? {
            AttributeValue::Ints(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn floats(&self, name: &str) -> Option<&[f32]> {
        match self.attribute(name)? {
            AttributeValue::Floats(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn float(&self, name: &str, default: f64) -> f64 {
        match self.attribute(name) {
            Some(AttributeValue::Float(value)) => f64::from(*value),
            _ => default,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            AttributeValue::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Option<&[Vec<u8>]> {
        match self.attribute(name)? {
            AttributeValue::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        match self.attribute(name)? {
            AttributeValue::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The element type that an attribute names, by number or as opsets below 6 by name.
    pub(crate) fn element_type(&self, name: &str) -> Option<ElementType> {
        match self.attribute(name)? {
            AttributeValue::Int(code) => i32::try_from(*code).ok().and_then(ElementType::from_code),
            AttributeValue::Text(_) => self.text(name).and_then(ElementType::from_legacy_name),
            _ => None,
        }
    }

    /// As [`Self::element_type`], of what can be computed with.
    pub(crate) fn element(&self, name: &str) -> Option<Result<DType, String>> {
        self.attribute(name)?;
        let Some(element) = self.element_type(name) else {
            return Some(Err(format!("{name} is no element type")));
        };
        Some(dtype(element).ok_or_else(|| format!("{element} cannot be computed with")))
    }

    /// The type of an input that is held as codes.
    pub(crate) fn code(&self, input: usize) -> Option<ElementType> {
        self.codes.get(input).copied().flatten()
    }

    /// What a `Cast` or `CastLike` casts to, as far as that is known before it runs.
    pub(crate) fn target(&self) -> Option<ElementType> {
        match self.op.as_str() {
            "Cast" => self.element_type("to"),
            _ => self.code(1),
        }
    }

    /// Brings the inputs' shapes together; an error names the inputs.
    pub(crate) fn resolve(
        &self,
        rule: Rule<'_>,
        shapes: &[impl AsRef<[usize]>],
    ) -> Result<simulcast_core::Plan, NodeError> {
        resolve(rule, shapes).map_err(|error| error.with_names(self.inputs.clone()).into())
    }

    pub(crate) fn wants(&self, output: usize) -> bool {
        self.outputs.get(output).copied().unwrap_or(false)
    }
}

/// The inputs of a node, as it runs.
#[derive(Debug)]
pub(crate) struct Inputs<'a>(pub(crate) Vec<Option<Value<'a>>>);

impl<'a> Inputs<'a> {
    pub(crate) fn get(&self, input: usize) -> Option<&Value<'a>> {
        self.0.get(input).and_then(Option::as_ref)
    }

    pub(crate) fn need(&self, input: usize) -> Result<&Value<'a>, NodeError> {
        self.get(input).ok_or_else(|| format!("input {input} is missing").into())
    }

    pub(crate) fn view(&self, input: usize) -> Result<AnyView<'_>, NodeError> {
        self.need(input).map(Value::view)
    }

    /// The value itself, which may be reused.
    pub(crate) fn take(&mut self, input: usize) -> Result<Value<'a>, NodeError> {
        let place = self.0.get_mut(input).and_then(Option::take);
        place.ok_or_else(|| format!("input {input} is missing").into())
    }

    /// The integers of an input, row after row.
    pub(crate) fn ints(&self, input: usize) -> Result<Option<Vec<i64>>, NodeError> {
        let Some(value) = self.get(input) else { return Ok(None) };
        let view = value.view();
        if let Some(view) = view.typed::<i64>() {
            return Ok(Some(view.iter().copied().collect()));
        }
        if let Some(view) = view.typed::<i32>() {
            return Ok(Some(view.iter().copied().map(i64::from).collect()));
        }
        Err(format!("input {input} is {}, not int64", view.dtype()).into())
    }

    /// The integers that newer opsets take as an input and older ones as an attribute.
    pub(crate) fn ints_or(
        &self,
        input: usize,
        call: &RunNode,
        name: &str,
    ) -> Result<Option<Vec<i64>>, NodeError> {
        match self.get(input) {
            Some(_) => self.ints(input),
            None => Ok(call.ints(name).map(<[_]>::to_vec)),
        }
    }
}

/// An axis counted from 0; it may be counted from the end.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, NodeError> {
    let from_end = axis.checked_add(i64::try_from(rank).unwrap_or(i64::MAX));
    let own = if axis < 0 { from_end } else { Some(axis) };
    let own = own.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
    own.ok_or_else(|| format!("there is no axis {axis} among {rank}").into())
}

/// Several axes in order; one that is named twice counts once.
pub(crate) fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, NodeError> {
    let mut own = axes.iter().map(|&one| axis(one, rank)).collect::<Result<Vec<_>, _>>()?;
    own.sort_unstable();
    own.dedup();
    Ok(own)
}

/// Several axes, none twice, in order.
pub(crate) fn distinct_axes(asked: &[i64], rank: usize) -> Result<Vec<usize>, NodeError> {
    let own = axes(asked, rank)?;
    match own.len() == asked.len() {
        true => Ok(own),
        false => Err(format!("{asked:?} names an axis twice").into()),
    }
}

/// Sizes that come from a tensor.
pub(crate) fn sizes(values: &[i64]) -> Result<Vec<usize>, NodeError> {
    let size = |&size: &i64| usize::try_from(size).map_err(|_| format!("a size is {size}").into());
    values.iter().map(size).collect()
}

/// What a run is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// The most bytes that results may have that are held at a time.
    pub(crate) bytes: usize,
    /// What those have that are held already.
    pub(crate) held: usize,
    pub(crate) threads: Option<usize>,
}

impl Allowed {
    /// Whether there may be a value of that size, before memory is asked for it. Sizes of 0 count as
    /// 1: what goes through the others takes as long, and notes of each as much.
    pub(crate) fn room(&self, shape: &[usize], dtype: DType) -> Result<(), NodeError> {
        let sizes = shape.iter().filter(|size| **size != 0);
        let bytes = sizes.copied().try_fold(dtype.size(), usize::checked_mul);
        let (limit, held) = (self.bytes, self.held);
        match bytes.is_some_and(|bytes| bytes <= self.left().min(isize::MAX.cast_unsigned())) {
            true => Ok(()),
            false => Err(NodeError::Memory { shape: shape.to_vec(), dtype, limit, held }),
        }
    }

    /// As [`Self::room`], with lists beside the value: of an entry for each of its elements, and for each index along
    /// each of its axes.
    pub(crate) fn room_and_lists<T>(&self, shape: &[usize], dtype: DType) -> Result<(), NodeError> {
        self.room(shape, dtype)?;
        let sizes = || shape.iter().copied().filter(|size| *size != 0);
        let bytes = || {
            let elements = sizes().try_fold(1, usize::checked_mul)?;
            let entries = sizes().try_fold(elements, usize::checked_add)?;
            entries.checked_mul(size_of::<T>())?.checked_add(elements * dtype.size())
        };
        let (limit, held) = (self.bytes, self.held);
        match bytes().is_some_and(|bytes| bytes <= self.left().min(isize::MAX.cast_unsigned())) {
            true => Ok(()),
            false => Err(NodeError::Memory { shape: shape.to_vec(), dtype, limit, held }),
        }
    }

    /// What is left for results.
    const fn left(&self) -> usize {
        self.bytes.saturating_sub(self.held)
    }

    /// As [`Self::room`], for the result of a program, before its shape is known: it has no more
    /// elements than its operands have, multiplied. False says nothing.
    pub(crate) fn surely_has_room(&self, dtype: DType, operands: &[AnyView<'_>]) -> bool {
        let most = operands.iter().map(AnyView::len).try_fold(dtype.size(), usize::checked_mul);
        // What is empty may have other sizes that are too large.
        most.is_some_and(|bytes| (1..=self.left()).contains(&bytes))
    }

    /// A run of a program.
    pub(crate) fn on<'r>(&self, program: &'r TypedProgram, operands: &'r [AnyView<'r>]) -> Run<'r> {
        let run = program.bind(operands);
        match self.threads {
            Some(threads) => run.threads(threads),
            None => run,
        }
    }

    /// Makes a program of some steps on these arrays, and runs it.
    pub(crate) fn evaluate(
        &self,
        operands: &[AnyView<'_>],
        steps: impl FnOnce(&mut Builder, &[Node]) -> Result<Node, TypeError>,
    ) -> Result<AnyArray, NodeError> {
        let program = program(operands, steps)?;
        let run = self.on(&program, operands);
        if !self.surely_has_room(program.dtype(), operands) {
            self.room(&run.shape()?, program.dtype())?;
        }
        Ok(run.compute()?)
    }

    /// Copies an array to a place of its type and shape.
    pub(crate) fn copy(
        &self,
        array: &AnyView<'_>,
        to: &mut AnyViewMut<'_>,
    ) -> Result<(), NodeError> {
        let operands = std::slice::from_ref(array);
        let program = program(operands, |_, args| Ok(args[0]))?;
        Ok(self.on(&program, operands).write(to)?)
    }
}

/// A program of some steps on such arrays.
fn program(
    operands: &[AnyView<'_>],
    steps: impl FnOnce(&mut Builder, &[Node]) -> Result<Node, TypeError>,
) -> Result<TypedProgram, NodeError> {
    let mut build = Builder::new(Promotion::Strict);
    let args: Vec<Node> = operands
        .iter()
        .enumerate()
        .map(|(n, view)| build.operand(&Names::default().operand(n), view.dtype()))
        .collect();
    let root = steps(&mut build, &args)?;
    Ok(build.finish(root)?)
}
