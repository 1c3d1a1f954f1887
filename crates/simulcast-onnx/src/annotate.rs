//! What was inferred, written back: a model whose values all have their types and shapes.
//!
//! The file is not made anew from what was understood of it. Its bytes are walked, and only the shapes
//! are replaced: in `value_info`, in the outputs, and in the inputs whose sizes were set. Everything
//! else, also what this crate does not know, is copied as it stands.
//!
//! ```text
//!  model ─ graph ─┬─ node ─ attribute ─ graph ─ …      copied, but for the graphs inside
//!                 ├─ input · output · value_info       the type where it says something else
//!                 ├─ everything else                   copied
//!                 └─ + value_info                      of values that had none
//! ```
//!
//! Sizes with names are written as `dim_param`: the inputs' names, expressions of them
//! (`2*N + 1`, `(height + 1)//2`), `bcast(N, M)` for the common size of two that broadcast, and `y.0`
//! for axis 0 of a value `y` whose size depends on its elements.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use simulcast_core::Dim;

use crate::infer::{Fact, Inference, infer};
use crate::load::declared_dim;
use crate::model::{AttributeValue, DeclaredDim, Graph, Node, Producer, ValueId};
use crate::schema::{self, dim, shape, tensor_type, value_info, value_type};
use crate::tensor::Buffer;
use crate::wire::{Field, Fields, Message, Spliced, WireError};
use crate::{ElementType, ExternalFiles, LoadError, Model, external};

/// What protobuf allows a message to have.
const MOST_BYTES: usize = i32::MAX as usize;

/// How a model is annotated.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AnnotateOptions<'a> {
    /// The sizes of symbols, which the inputs then have.
    pub sizes: &'a [(&'a str, usize)],
    /// Where data in other files are; without it they are not looked at, and stay as they are.
    pub folder: Option<&'a Path>,
    /// Data in other files, where they are not in a folder; taken before `folder`.
    pub files: Option<&'a Arc<dyn ExternalFiles>>,
    /// Equal names of sizes do not mean equal sizes; inputs get a name for each axis.
    pub distrust_names: bool,
}

/// A model with its shapes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Annotated {
    /// The file.
    pub bytes: Vec<u8>,
    /// The model as it was.
    pub model: Model,
    /// What was inferred.
    pub inference: Inference,
    /// What was written.
    pub report: AnnotateReport,
}

/// What was written into a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnnotateReport {
    /// Values that had no type or shape and have one now.
    pub added: usize,
    /// Values whose type or shape was replaced: the name, and both shapes.
    pub replaced: Vec<(String, String, String)>,
    /// Values that say what they said.
    pub kept: usize,
    /// Results of nodes whose every size is a number.
    pub complete: usize,
    /// Results of nodes with sizes that are names or expressions.
    pub symbolic: usize,
    /// Results of nodes whose number of axes is not known.
    pub unranked: usize,
    /// Operators whose results have sizes that their inputs do not explain, and how many nodes have them.
    pub lost: BTreeMap<String, usize>,
}

impl AnnotateReport {
    /// The report for scripts.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let replaced = self.replaced.iter().map(
            |(name, before, after)| json!({ "value": name, "before": before, "after": after }),
        );
        json!({
            "results": {
                "complete": self.complete, "symbolic": self.symbolic, "unranked": self.unranked,
            },
            "added": self.added,
            "kept": self.kept,
            "replaced": replaced.collect::<Vec<_>>(),
            "not_known_after": self.lost,
        })
    }
}

/// Why a model is not annotated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnnotateError {
    /// It is no model that can be worked with.
    Load(LoadError),
    /// Inference cannot be done: a symbol that no input has, functions without end.
    Infer(String),
    /// With its shapes it would have more bytes than a model can have.
    TooLarge(usize),
}

impl fmt::Display for AnnotateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "{error}"),
            Self::Infer(why) => f.write_str(why),
            Self::TooLarge(bytes) => {
                write!(f, "with its shapes it would have {bytes} bytes, above the 2 GiB of a model")
            }
        }
    }
}

impl std::error::Error for AnnotateError {}

impl From<LoadError> for AnnotateError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl From<WireError> for AnnotateError {
    fn from(why: WireError) -> Self {
        Self::Load(LoadError::Protobuf { part: "ModelProto", why })
    }
}

/// Infers a model's shapes and writes them into it.
///
/// Nodes that cannot work are in [`Inference::errors`]; their results are left without a shape.
///
/// # Errors
///
/// An [`AnnotateError`] where the bytes are no model, a size is set that no input has, or the result
/// would be too large for a file.
///
/// ```
/// use simulcast_onnx::{AnnotateOptions, Model, annotate};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let path = concat!(env!("CARGO_MANIFEST_DIR"), "/models/loss.onnx");
/// let annotated = annotate(std::fs::read(path)?, AnnotateOptions::default())?;
/// assert!(annotated.inference.errors().is_empty());
/// let again = annotate(annotated.bytes.clone(), AnnotateOptions::default())?;
/// assert_eq!(again.bytes, annotated.bytes);
/// # Ok(())
/// # }
/// ```
pub fn annotate(
    bytes: impl Into<Vec<u8>>,
    options: AnnotateOptions<'_>,
) -> Result<Annotated, AnnotateError> {
    let buffer = Buffer::new(bytes.into());
    let place = match options.files {
        Some(files) => external::Place::Files(Arc::clone(files)),
        None => options.folder.into(),
    };
    let mut model = Model::from_buffer(Arc::clone(&buffer), &place)?;
    if options.distrust_names {
        model.forget_names();
    }
    let inference = infer(&model, options.sizes).map_err(AnnotateError::Infer)?;
    let mut report = summary(&model, &inference);
    let mut writer = Writer {
        inference: &inference,
        report: &mut report,
        inputs: if options.distrust_names { Place::Result } else { Place::Input },
    };
    let mut out = Spliced::default();
    for field in Fields::new(&buffer) {
        let field = field?;
        match field.number {
            schema::model::GRAPH => {
                let graph = writer.graph(&field, &model.graph, &inference.facts)?;
                out.message(schema::model::GRAPH, graph);
            }
            _ => out.copy(&field),
        }
    }
    if out.len() > MOST_BYTES {
        return Err(AnnotateError::TooLarge(out.len()));
    }
    let bytes = out.into_bytes();
    Ok(Annotated { bytes, model, inference, report })
}

/// What is known of the results of the model's nodes.
fn summary(model: &Model, inference: &Inference) -> AnnotateReport {
    let mut report = AnnotateReport::default();
    for node in &model.graph.nodes {
        let mut lost = false;
        for id in node.outputs.iter().flatten() {
            let dims = &inference.facts[id.index()].dims;
            match (dims.dims(), dims.sizes()) {
                (_, Some(_)) => report.complete += 1,
                (Some(_), None) => report.symbolic += 1,
                (None, None) => report.unranked += 1,
            }
            let name = model.graph.name_of(*id);
            lost |= dims.dims().is_none_or(|dims| dims.iter().any(|dim| is_own(dim, name)));
        }
        let is_ranked = |id: &ValueId| inference.facts[id.index()].dims.dims().is_some();
        if lost && node.inputs.iter().flatten().all(is_ranked) {
            *report.lost.entry(node.operator()).or_default() += 1;
        }
    }
    report
}

/// Whether nothing is known of a size but which value has it.
fn is_own(dim: &Dim, value: &str) -> bool {
    match dim {
        Dim::Range(_) => true,
        Dim::Symbol(symbol) => {
            symbol.name.strip_prefix(value).is_some_and(|axis| axis.starts_with('.'))
        }
        _ => false,
    }
}

struct Writer<'m> {
    inference: &'m Inference,
    report: &'m mut AnnotateReport,
    /// What of an input is replaced.
    inputs: Place,
}

/// What of a `ValueInfoProto` is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Sizes that were set, for the rest is what the model asks for.
    Input,
    /// Whatever says something else.
    Result,
}

impl Writer<'_> {
    fn graph<'a>(
        &mut self,
        field: &Field<'a>,
        graph: &Graph,
        facts: &[Fact],
    ) -> Result<Spliced<'a>, WireError> {
        let ids: HashMap<&str, ValueId> = (0_u32..)
            .zip(&graph.values)
            .map(|(id, value)| (value.name.as_str(), ValueId(id)))
            .collect();
        let mut out = Spliced::default();
        let mut described: HashSet<ValueId> = graph.inputs.iter().copied().collect();
        let mut nodes = graph.nodes.iter();
        for field in field.fields()? {
            let field = field?;
            let place = match field.number {
                schema::graph::NODE => {
                    match nodes.next().filter(|node| node.graphs().next().is_some()) {
                        Some(node) => out.message(schema::graph::NODE, self.node(&field, node)?),
                        None => out.copy(&field),
                    }
                    continue;
                }
                schema::graph::INPUT => self.inputs,
                schema::graph::OUTPUT | schema::graph::VALUE_INFO => Place::Result,
                _ => {
                    out.copy(&field);
                    continue;
                }
            };
            let id = ids.get(name_of(&field)?).copied();
            let fact = id.and_then(|id| facts.get(id.index()));
            let (Some(id), Some(fact)) = (id, fact) else {
                out.copy(&field);
                continue;
            };
            described.insert(id);
            match self.described(&field, graph.name_of(id), fact, place)? {
                Some(changed) => out.message(field.number, changed),
                None => out.copy(&field),
            }
        }
        for (id, (value, fact)) in (0_u32..).zip(graph.values.iter().zip(facts)) {
            let id = ValueId(id);
            let is_result = matches!(value.producer, Producer::Node(_));
            if !is_result || described.contains(&id) {
                continue;
            }
            let Some(tensor) = tensor_of(fact) else { continue };
            let mut kind = Message::default();
            kind.message(value_type::TENSOR, &tensor);
            let mut info = Message::default();
            info.bytes(value_info::NAME, &value.name);
            info.message(value_info::TYPE, &kind);
            let mut whole = Message::default();
            whole.message(schema::graph::VALUE_INFO, &info);
            out.add(whole);
            self.report.added += 1;
        }
        Ok(out)
    }

    /// A node with the graphs inside it.
    fn node<'a>(&mut self, field: &Field<'a>, node: &Node) -> Result<Spliced<'a>, WireError> {
        let mut out = Spliced::default();
        let mut attributes = node.attributes.iter();
        for field in field.fields()? {
            let field = field?;
            if field.number != schema::node::ATTRIBUTE {
                out.copy(&field);
                continue;
            }
            let Some(AttributeValue::Graphs(graphs)) = attributes.next().map(|own| &own.value)
            else {
                out.copy(&field);
                continue;
            };
            let mut graphs = graphs.iter();
            let mut attribute = Spliced::default();
            for field in field.fields()? {
                let field = field?;
                let is_graph =
                    matches!(field.number, schema::attribute::G | schema::attribute::GRAPHS);
                let graph = if is_graph { graphs.next() } else { None };
                let facts = graph.and_then(|graph| {
                    let address = std::ptr::from_ref(graph).addr();
                    Some((graph, self.inference.nested.get(&address)?))
                });
                match facts {
                    Some((graph, facts)) => {
                        let changed = self.graph(&field, graph, facts)?;
                        attribute.message(field.number, changed);
                    }
                    None => attribute.copy(&field),
                }
            }
            out.message(schema::node::ATTRIBUTE, attribute);
        }
        Ok(out)
    }

    /// A `ValueInfoProto` that says what is known; `None` where it does so already.
    fn described<'a>(
        &mut self,
        field: &Field<'a>,
        name: &str,
        fact: &Fact,
        place: Place,
    ) -> Result<Option<Spliced<'a>>, WireError> {
        let mut out = Spliced::default();
        let mut kind = None;
        for field in field.fields()? {
            let field = field?;
            match field.number {
                value_info::TYPE => kind = Some(field),
                _ => out.copy(&field),
            }
        }
        let fields = kind.as_ref().map(Field::fields).transpose()?;
        let changed = typed(fields, fact, place)?;
        let Some((before, changed)) = changed else {
            self.report.kept += usize::from(place == Place::Result);
            return Ok(None);
        };
        out.message(value_info::TYPE, changed);
        let was = before.split(' ').next().and_then(ElementType::from_name);
        let after = match fact.element.filter(|_| was.is_some()) {
            Some(element) => format!("{element} {}", fact.dims),
            None => fact.dims.to_string(),
        };
        let about = (name.to_owned(), before, after);
        self.report.replaced.push(about);
        Ok(Some(out))
    }
}

/// The name in a `ValueInfoProto`.
fn name_of<'a>(field: &Field<'a>) -> Result<&'a str, WireError> {
    let mut name = "";
    for field in field.fields()? {
        let field = field?;
        if field.number == value_info::NAME {
            name = field.text()?;
        }
    }
    Ok(name)
}

/// A `TypeProto` that says what is known, and the shape that it had, with the type where that is another; `None` where it says so already,
/// or is no tensor.
fn typed<'a>(
    kind: Option<Fields<'a>>,
    fact: &Fact,
    place: Place,
) -> Result<Option<(String, Spliced<'a>)>, WireError> {
    let mut out = Spliced::default();
    let mut old = None;
    for field in kind.into_iter().flatten() {
        let field = field?;
        match field.number {
            value_type::TENSOR => old = Some(field),
            value_type::DENOTATION => out.copy(&field),
            value_type::SEQUENCE
            | value_type::MAP
            | value_type::OPAQUE
            | value_type::SPARSE_TENSOR
            | value_type::OPTIONAL => return Ok(None),
            _ => out.copy(&field),
        }
    }
    let Some(old) = old else {
        let own = tensor_of(fact).filter(|_| place == Place::Result);
        return Ok(own.map(|tensor| {
            let mut whole = Message::default();
            whole.message(value_type::TENSOR, &tensor);
            out.add(whole);
            ("no type".to_owned(), out)
        }));
    };
    let mut tensor = Spliced::default();
    let (mut element, mut shaped) = (None, None);
    for field in old.fields()? {
        let field = field?;
        match field.number {
            tensor_type::ELEM_TYPE => element = Some(field),
            tensor_type::SHAPE => shaped = Some(field),
            _ => tensor.copy(&field),
        }
    }
    let (mut changed, mut typed) = (false, String::new());
    let code = fact.element.map(|element| i64::from(element.code()));
    match (&element, code) {
        (Some(own), Some(code)) if place == Place::Result && own.int()? != code => {
            changed = true;
            let own = i32::try_from(own.int()?).ok().and_then(ElementType::from_code);
            typed = own.map_or_else(String::new, |own| format!("{own} "));
            tensor.int(tensor_type::ELEM_TYPE, code);
        }
        (Some(own), _) => tensor.copy(own),
        (None, Some(code)) if place == Place::Result => {
            changed = true;
            tensor.int(tensor_type::ELEM_TYPE, code);
        }
        (None, _) => {}
    }
    let mut before = "no shape".to_owned();
    match (shaped, fact.dims.dims()) {
        (Some(shaped), Some(dims)) => {
            let (text, new) = resized(&shaped, dims, place)?;
            before = text;
            match new {
                Some(new) => {
                    changed = true;
                    tensor.message(tensor_type::SHAPE, new);
                }
                None => tensor.copy(&shaped),
            }
        }
        (Some(shaped), None) => tensor.copy(&shaped),
        (None, Some(dims)) if place == Place::Result => {
            changed = true;
            tensor.message(tensor_type::SHAPE, shape_of(dims).into());
        }
        (None, _) => {}
    }
    out.message(value_type::TENSOR, tensor);
    Ok(changed.then(|| (typed + &before, out)))
}

/// A `TensorShapeProto` with what is known, and what it said before; `None` where it says so already.
fn resized<'a>(
    shaped: &Field<'a>,
    dims: &[Dim],
    place: Place,
) -> Result<(String, Option<Spliced<'a>>), WireError> {
    let mut declared = Vec::new();
    for field in shaped.fields()? {
        let field = field?;
        if field.number == shape::DIM {
            declared.push((declared_dim(&field)?, field));
        }
    }
    let texts: Vec<String> = declared.iter().map(|(dim, _)| dim.to_string()).collect();
    let before = match texts.as_slice() {
        [only] => format!("({only},)"),
        all => format!("({})", all.join(", ")),
    };
    if declared.len() != dims.len() {
        let new = (place == Place::Result).then(|| shape_of(dims).into());
        return Ok((before, new));
    }
    let mut out = Spliced::default();
    let mut changed = false;
    let mut own = dims.iter();
    for field in shaped.fields()? {
        let field = field?;
        if field.number != shape::DIM {
            out.copy(&field);
            continue;
        }
        let Some(known) = own.next() else { continue };
        let declared = declared_dim(&field)?;
        let same = match (&declared, known) {
            (DeclaredDim::Size(a), Dim::Size(b)) => a == b,
            (_, Dim::Range(_)) => true,
            (_, Dim::Symbol(_) | Dim::Join(_)) if place == Place::Input => true,
            (DeclaredDim::Symbol(a), Dim::Symbol(b)) => *a == *b.name,
            (DeclaredDim::Symbol(a), Dim::Join(_)) => *a == known.to_string(),
            _ => false,
        };
        if same {
            out.copy(&field);
            continue;
        }
        changed = true;
        let mut sized = Spliced::default();
        sized.add(dim_of(known));
        for field in field.fields()? {
            let field = field?;
            if !matches!(field.number, dim::VALUE | dim::PARAM) {
                sized.copy(&field);
            }
        }
        out.message(shape::DIM, sized);
    }
    Ok((before, changed.then_some(out)))
}

/// A `TypeProto.Tensor`; `None` where the type of the elements is not known, which must be there.
fn tensor_of(fact: &Fact) -> Option<Message> {
    let mut tensor = Message::default();
    tensor.int(tensor_type::ELEM_TYPE, fact.element?.code().into());
    if let Some(dims) = fact.dims.dims() {
        tensor.message(tensor_type::SHAPE, &shape_of(dims));
    }
    Some(tensor)
}

fn shape_of(dims: &[Dim]) -> Message {
    let mut shape = Message::default();
    dims.iter().for_each(|known| shape.message(shape::DIM, &dim_of(known)));
    shape
}

/// A `TensorShapeProto.Dimension`: a number, a name, or nothing.
fn dim_of(known: &Dim) -> Message {
    let mut out = Message::default();
    let name: Cow<'_, str> = match known {
        Dim::Size(size) => {
            // A size above what the file can say is not known in it.
            if let Ok(size) = i64::try_from(*size) {
                out.int(dim::VALUE, size);
            }
            return out;
        }
        Dim::Range(_) => return out,
        Dim::Symbol(symbol) => Cow::Borrowed(&*symbol.name),
        Dim::Join(_) => Cow::Owned(known.to_string()),
    };
    out.bytes(dim::PARAM, name.as_bytes());
    out
}
