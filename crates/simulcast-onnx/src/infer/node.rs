//! A node as inference sees it: its inputs' facts, its attributes, and the rule for its operator.

use std::fmt;

use simulcast_core::{Constraint, Dim, Dims, Names, Outcome, Rule, Term};

use super::{Broadcast, Context, FOLDED, Fact, NodeProblem, ProblemOperand, Scope};
use crate::ElementType;
use crate::expr::SizeExpr;
use crate::model::{AttributeValue, Node};
use crate::operators::{Row, Signature, attributes, types};

/// What an operator's rule says: its results, or what is wrong.
pub(crate) type Results = Result<Vec<Fact>, String>;

pub(crate) struct InferNode<'c, 'f, 'm> {
    pub(crate) context: &'c mut Context<'m>,
    pub(crate) scope: &'c Scope<'m>,
    pub(crate) node: &'m Node,
    pub(crate) row: &'static Row,
    pub(crate) index: usize,
    pub(crate) opset: i64,
    /// What is known of each input; `None` where it is left out.
    pub(crate) inputs: Vec<Option<&'f Fact>>,
    /// What is known of every value of the graph.
    pub(crate) facts: &'f [Fact],
}

impl<'f, 'm> InferNode<'_, 'f, 'm> {
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.scope.path, self.scope.graph.node_name(self.index))
    }

    pub(crate) fn op(&self) -> &'m str {
        &self.node.op
    }

    pub(crate) fn row(&self) -> &'static Row {
        self.row
    }

    pub(crate) fn op_is(&self, op: &str) -> bool {
        self.node.op == op
    }

    // Inputs.

    /// What is known of an input; nothing where it is left out.
    pub(crate) fn input(&self, input: usize) -> &'f Fact {
        self.inputs.get(input).copied().flatten().unwrap_or(&Fact::UNKNOWN)
    }

    pub(crate) fn has(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(Option::is_some)
    }

    pub(crate) fn dims(&self, input: usize) -> &'f Dims {
        &self.input(input).dims
    }

    pub(crate) fn ranked(&self, input: usize) -> Option<&'f [Dim]> {
        self.dims(input).dims()
    }

    pub(crate) fn values(&self, input: usize) -> Option<&'f [SizeExpr]> {
        self.input(input).values.as_deref()
    }

    pub(crate) fn element(&self, input: usize) -> Option<ElementType> {
        self.input(input).element
    }

    /// The element type of a result by the operator's signature.
    pub(crate) fn output_element(&self, output: usize) -> Option<ElementType> {
        let signature = Signature::of(self.row.types);
        let word = signature.output(output)?.word;
        let known = (0..self.inputs.len()).find_map(|input| {
            let own = signature.input(input)?;
            if own.word == word { self.element(input) } else { None }
        });
        let variable = word.starts_with(|first: char| first.is_ascii_uppercase());
        if variable { known } else { ElementType::from_name(word) }
    }

    /// The name of an input, and where it comes from.
    pub(crate) fn input_name(&self, input: usize) -> (String, String) {
        match self.node.inputs.get(input).copied().flatten() {
            Some(id) => {
                let graph = self.scope.graph;
                (graph.name_of(id).to_owned(), graph.producer_text(id))
            }
            None => (String::new(), String::new()),
        }
    }

    // What is wrong.

    /// Notes that the node cannot work.
    pub(crate) fn problem(&mut self, message: String) {
        let operand = |input: usize| {
            let Fact { element, dims, .. } = self.input(input);
            let (name, producer) = self.input_name(input);
            ProblemOperand { name, producer, element: *element, dims: dims.clone() }
        };
        let given = (0..self.inputs.len()).filter(|input| self.has(*input));
        let operands = given.map(operand).collect();
        let (node, op) = (self.name(), self.op().to_owned());
        self.context.problems.push(NodeProblem { node, op, message, operands });
    }

    /// Whether the inputs have the types of the operator's signature, as far as they are known.
    pub(crate) fn types(&self) -> Result<(), String> {
        let signature = Signature::of(self.row.types);
        let mut bound: Vec<(&str, usize, ElementType)> = Vec::new();
        for input in 0..self.inputs.len() {
            let typed = signature.input(input).map(|typed| typed.word);
            let (Some(word), Some(own)) = (typed, self.element(input)) else { continue };
            let name = |input: usize| self.input_name(input).0;
            if let Some(why) = types::refusal(self.row, self.opset, input, own) {
                return Err(format!("{} is {own}, {why}", name(input)));
            }
            let expected = match word {
                "_" => continue,
                "index" if matches!(own, ElementType::I32 | ElementType::I64) => continue,
                "index" => "int32 or int64",
                word if word.starts_with(|first: char| first.is_ascii_uppercase()) => {
                    match bound.iter().find(|(variable, ..)| *variable == word) {
                        Some((_, other, element)) if *element != own => {
                            let (one, this) = (name(*other), name(input));
                            return Err(format!(
                                "{one} is {element} and {this} {own}, which must be the same type"
                            ));
                        }
                        Some(_) => {}
                        None => bound.push((word, input, own)),
                    }
                    continue;
                }
                word if ElementType::from_name(word) == Some(own) => continue,
                word => word,
            };
            return Err(format!("{} is {own}, not {expected}", name(input)));
        }
        Ok(())
    }

    /// Whether results and attributes are such as the standard operators have.
    pub(crate) fn form(&self) -> Result<(), String> {
        if !self.node.domain.is_empty() {
            return Ok(());
        }
        let outputs = Signature::of(self.row.types).outputs;
        let given = self.node.outputs.len();
        if given > outputs.len() && !outputs.last().is_some_and(|last| last.repeats) {
            return Err(format!("it has {} results, not {given}", outputs.len()));
        }
        let known = if self.opset > attributes::OPSET { &[] } else { &*self.node.attributes };
        let mut attributes = known.iter();
        attributes.try_for_each(|own| attributes::check(&own.name, &own.value))
    }

    // Attributes, through the call of a function where they refer to it.

    pub(crate) fn attribute(&self, name: &str) -> Option<&'m AttributeValue> {
        match self.node.attribute(name)? {
            AttributeValue::Reference(of) => self.scope.arguments.get(of.as_str()).copied(),
            value => Some(value),
        }
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            AttributeValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn ints(&self, name: &str) -> Option<&'m [i64]> {
        match self.attribute(name)? {
            AttributeValue::Ints(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn floats(&self, name: &str) -> Option<&'m [f32]> {
        match self.attribute(name)? {
            AttributeValue::Floats(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Option<&'m [Vec<u8>]> {
        match self.attribute(name)? {
            AttributeValue::Texts(texts) => Some(texts),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'m str> {
        match self.attribute(name)? {
            AttributeValue::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// The element type that an attribute names by its number.
    pub(crate) fn element_of(&self, name: &str) -> Option<ElementType> {
        i32::try_from(self.int(name)?).ok().and_then(ElementType::from_code)
    }

    /// The integers that newer opsets take as an input and older ones as an attribute; `Err` where
    /// they are an input whose values are not known.
    pub(crate) fn ints_of(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, ()> {
        if self.has(input) {
            return self.input(input).ints().map(Some).ok_or(());
        }
        Ok(self.ints(name).map(<[_]>::to_vec))
    }

    /// The followed elements of an input, and its sizes. Beside a 0 the other sizes are few too, so that offsets along
    /// each axis can be listed.
    pub(crate) fn elements(&self, input: usize) -> Option<(&'f [SizeExpr], Vec<usize>)> {
        let (values, sizes) = (self.values(input)?, self.dims(input).sizes()?.to_vec());
        let count = simulcast_core::elements(&sizes).ok()?;
        let mut known = sizes.iter().map(|size| (*size).max(1));
        let span = known.try_fold(1, usize::checked_mul)?;
        (count == values.len() && span <= FOLDED).then_some((values, sizes))
    }

    /// Whether the known indices of an input are inside an axis.
    pub(crate) fn inside(&self, input: usize, axis: &Dim, negative: bool) -> Result<(), String> {
        let (Some(size), Some(indices)) = (axis.size(), self.input(input).ints()) else {
            return Ok(());
        };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let least = if negative { size.saturating_neg() } else { 0 };
        match indices.iter().find(|index| !(least..size).contains(*index)) {
            Some(index) => Err(format!("the index {index} is outside an axis of {size}")),
            None => Ok(()),
        }
    }

    // Sizes.

    pub(crate) fn expr(&mut self, dim: &Dim) -> Option<SizeExpr> {
        self.context.expr(dim)
    }

    /// An expression as a size; a negative one is an error of the model.
    pub(crate) fn dim(&mut self, expr: Option<&SizeExpr>) -> Result<Dim, String> {
        match expr {
            None => Ok(Dim::UNKNOWN),
            Some(expr) => {
                let negative = || format!("a size is negative: {expr}");
                self.context.dim(expr).ok_or_else(negative)
            }
        }
    }

    /// Arithmetic on sizes: unknown where a size is.
    pub(crate) fn with(
        &mut self,
        dims: &[&Dim],
        of: impl FnOnce(&[SizeExpr]) -> Option<SizeExpr>,
    ) -> Result<Dim, String> {
        let exprs: Option<Vec<SizeExpr>> = dims.iter().map(|dim| self.expr(dim)).collect();
        let expr = exprs.and_then(|exprs| of(&exprs));
        self.dim(expr.as_ref())
    }

    /// An axis counted from 0; it may be counted from the end.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, String> {
        let from_end = axis.checked_add(i64::try_from(rank).unwrap_or(i64::MAX));
        let own = if axis < 0 { from_end } else { Some(axis) };
        let own = own.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
        own.ok_or_else(|| format!("there is no axis {axis} among {rank}"))
    }

    /// Two sizes that must be equal; the one that says more. Symbols become a constraint.
    pub(crate) fn equal(
        &mut self,
        a: &Dim,
        b: &Dim,
        what: impl fmt::Display,
    ) -> Result<Dim, String> {
        let term = |dim: &Dim| match dim {
            Dim::Size(size) => Some(Term::Size(*size)),
            Dim::Symbol(symbol) => Some(Term::Symbol(symbol.name.clone())),
            _ => None,
        };
        match (a, b) {
            (Dim::Size(x), Dim::Size(y)) if x != y => Err(format!("{what}: {a} and {b} differ")),
            (a, b) if a == b => Ok(a.clone()),
            (Dim::Range(_), known) | (known, Dim::Range(_)) => Ok(known.clone()),
            _ => {
                let (known, other) = if b.size().is_some() { (b, a) } else { (a, b) };
                if let (Some(other), Some(known)) = (term(other), term(known)) {
                    self.require(Constraint::Equal(other, known));
                }
                Ok(known.clone())
            }
        }
    }

    fn require(&mut self, constraint: Constraint) {
        let node = self.name();
        self.context.require(constraint, node);
    }

    // Broadcasts.

    /// Resolves a broadcast of inputs and notes it. The result is unknown where it fails.
    pub(crate) fn broadcast_of(&mut self, rule: Rule<'_>, inputs: &[usize]) -> Dims {
        let element = self.element(inputs.last().copied().unwrap_or(0));
        let operands = inputs.iter().map(|input| (*input, None)).collect::<Vec<_>>();
        self.broadcast_as(rule, &operands, element)
    }

    /// As [`Self::broadcast_of`], with other sizes than the input's own for some operands.
    pub(crate) fn broadcast_as(
        &mut self,
        rule: Rule<'_>,
        operands: &[(usize, Option<(&str, Dims)>)],
        element: Option<ElementType>,
    ) -> Dims {
        let (mut names, mut producers, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (input, other) in operands {
            let (name, mut producer) = self.input_name(*input);
            match other {
                Some((what, dims)) => {
                    if what.is_empty() {
                        let own = self.dims(*input);
                        producer = format!("part of {own}, {producer}");
                        names.push(name);
                    } else {
                        producer = String::new();
                        names.push((*what).to_owned());
                    }
                    shapes.push(dims.clone());
                }
                None => {
                    names.push(name);
                    shapes.push(self.dims(*input).clone());
                }
            }
            producers.push(producer);
        }
        let names = Names { operands: names, axes: Vec::new() };
        let outcome = Outcome::of(&rule.into(), &shapes, &names);
        if let Outcome::Symbolic(plan) = &outcome {
            for constraint in plan.constraints() {
                self.require(constraint.clone());
            }
        }
        let dims = match (outcome.shape(), rule.kind().result_is_first()) {
            (Some(dims), _) => dims,
            // Only one operand decides these, so what follows can still be looked at.
            (None, true) => shapes.first().cloned().unwrap_or(Dims::Unranked),
            (None, false) => Dims::Unranked,
        };
        let at = self.scope.top.then_some(self.index);
        let (node, op) = (self.name(), self.op().to_owned());
        self.context.broadcasts.push(Broadcast {
            node,
            op,
            names,
            producers,
            element,
            outcome,
            at,
        });
        dims
    }

    /// Values of a result of those sizes, where they are few enough to follow.
    pub(crate) fn fact_with(
        &self,
        element: Option<ElementType>,
        dims: Dims,
        values: Option<Vec<SizeExpr>>,
    ) -> Fact {
        let count = dims.sizes().and_then(|sizes| simulcast_core::elements(&sizes).ok());
        let values = values.filter(|values| count == Some(values.len()) && values.len() <= FOLDED);
        Fact { values: values.map(Into::into), ..Fact::new(element, dims) }
    }
}

/// How many elements lie between neighbours along each axis, row after row, of sizes as [`InferNode::elements`] gives them.
pub(crate) fn strides(sizes: &[usize]) -> Vec<usize> {
    let after = |axis: usize| sizes[axis + 1..].iter().product();
    (0..sizes.len()).map(after).collect()
}

/// The elements at the sums of one offset of each axis, the last axis fastest.
pub(crate) fn gathered(values: &[SizeExpr], offsets: &[Vec<usize>]) -> Vec<SizeExpr> {
    let mut places = vec![0_usize];
    for axis in offsets {
        let all = places.iter().flat_map(|place| axis.iter().map(move |offset| place + offset));
        places = all.collect();
    }
    places.into_iter().filter_map(|place| values.get(place).cloned()).collect()
}
