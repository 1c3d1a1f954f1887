//! Loading: from protobuf to a [`Model`], believing nothing that was not checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crate::external::{ExternalFiles, Place};
use crate::model::{
    Attribute, AttributeValue, Declared, DeclaredDim, Function, Graph, Model, Node, ValueId,
};
use crate::schema::{
    self, attribute, attribute_type, dim, function, graph, model, node, tensor_type, value_type,
};
use crate::structure::Builder;
use crate::tensor::Buffer;
use crate::wire::{Field, Fields, WireError};
use crate::{ElementType, LoadError, Tensor};

/// How deep graphs may be nested in attributes: each level takes a few hundred bytes of stack.
const DEPTH: usize = 32;

impl Model {
    /// Loads a model from a file; data in other files are looked for below its folder.
    ///
    /// # Errors
    ///
    /// A [`LoadError`] where the file cannot be read, is no ONNX model, or contradicts itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let failed =
            |error: io::Error| LoadError::Read { path: path.to_owned(), why: error.to_string() };
        let bytes = read(path).map_err(failed)?;
        Self::from_buffer(Buffer::new(bytes), &path.parent().into())
    }

    /// Loads a model from memory. It has no folder, so data in other files are refused.
    ///
    /// # Errors
    ///
    /// A [`LoadError`] where the bytes are no ONNX model or it contradicts itself.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::from_bytes_in(bytes, None)
    }

    /// Loads a model from memory; data in other files are looked for among those.
    ///
    /// # Errors
    ///
    /// A [`LoadError`] where the bytes are no ONNX model or it contradicts itself.
    pub fn from_bytes_beside(
        bytes: &[u8],
        files: Arc<dyn ExternalFiles>,
    ) -> Result<Self, LoadError> {
        Self::from_buffer(Buffer::new(bytes.to_vec()), &Place::Files(files))
    }

    /// Loads a model from memory; data in other files are looked for below that folder.
    pub(crate) fn from_bytes_in(bytes: &[u8], folder: Option<&Path>) -> Result<Self, LoadError> {
        Self::from_buffer(Buffer::new(bytes.to_vec()), &folder.into())
    }

    pub(crate) fn from_buffer(buffer: Buffer, place: &Place) -> Result<Self, LoadError> {
        Decoder { buffer, place }.model()
    }
}

/// The bytes of a model's file, which may be a pipe: no more than a model can have, and none that do not begin as one.
///
/// # Errors
///
/// Where the file cannot be read, or is no ONNX model by its first byte or by its size.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    /// What protobuf allows.
    const MOST: u64 = i32::MAX as u64;
    let no_model = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    let mut file = File::open(path)?;
    let known = file.metadata()?.len();
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(1).read_to_end(&mut bytes)?;
    // A field has a number from 1 on, and one of four kinds that are in use.
    if bytes.first().is_some_and(|first| first >> 3 == 0 || matches!(first & 7, 3 | 4 | 6 | 7)) {
        return Err(no_model("not an ONNX model: it does not begin with a field"));
    }
    if known <= MOST {
        bytes.try_reserve_exact(usize::try_from(known).unwrap_or(0))?;
        file.take(MOST).read_to_end(&mut bytes)?;
    }
    match known <= MOST && bytes.len() as u64 <= MOST {
        true => Ok(bytes),
        false => Err(no_model("not an ONNX model: it has more than the 2 GiB that one can have")),
    }
}

struct Decoder<'f> {
    buffer: Buffer,
    place: &'f Place,
}

fn broken(part: &'static str) -> impl Fn(WireError) -> LoadError {
    move |why| LoadError::Protobuf { part, why }
}

impl Decoder<'_> {
    fn model(&self) -> Result<Model, LoadError> {
        let fail = broken("ModelProto");
        let buffer = Arc::clone(&self.buffer);
        let (mut graph, mut functions, mut opsets) = (None, Vec::new(), BTreeMap::new());
        let (mut ir_version, mut producer, mut version) = (0, "", "");
        for field in Fields::new(&buffer) {
            let field = field.map_err(&fail)?;
            match field.number {
                model::IR_VERSION => ir_version = field.int().map_err(&fail)?,
                model::PRODUCER_NAME => producer = field.text().map_err(&fail)?,
                model::PRODUCER_VERSION => version = field.text().map_err(&fail)?,
                // Other readers would merge them; nobody writes two.
                model::GRAPH if graph.is_some() => {
                    return Err(LoadError::Unsupported("a second graph".into()));
                }
                model::GRAPH => graph = Some(field.bytes().map_err(&fail)?),
                model::OPSET_IMPORT => opset(&field, &mut opsets)?,
                model::FUNCTIONS => functions.push(field.bytes().map_err(&fail)?),
                _ => {}
            }
        }
        let graph = self.graph(graph.ok_or(LoadError::NoGraph)?, 0)?.finish("the graph")?;
        let functions: Vec<Function> =
            functions.iter().map(|message| self.function(message)).collect::<Result<_, _>>()?;
        let mut seen = std::collections::BTreeSet::new();
        for function in &functions {
            if !seen.insert((&function.domain, &function.name, &function.overload)) {
                let name = function.name.clone();
                return Err(LoadError::Duplicate { name, by: "another function".into() });
            }
        }
        let producer = format!("{producer} {version}").trim().to_owned();
        Ok(Model { ir_version, producer, opsets, graph, functions })
    }

    fn function(&self, message: &[u8]) -> Result<Function, LoadError> {
        let fail = broken("FunctionProto");
        let (mut name, mut domain, mut overload) = ("", "", "");
        let (mut opsets, mut defaults) = (BTreeMap::new(), Vec::new());
        let mut builder = Builder::default();
        let (mut outputs, mut declared) = (Vec::new(), Vec::new());
        for field in Fields::new(message) {
            let field = field.map_err(&fail)?;
            match field.number {
                function::NAME => name = field.text().map_err(&fail)?,
                function::INPUT => {
                    let input = field.text().map_err(&fail)?;
                    builder.input(input, None)?;
                }
                function::OUTPUT => outputs.push(field.text().map_err(&fail)?),
                function::NODE => self.node(&field, &mut builder, 0)?,
                function::OPSET_IMPORT => opset(&field, &mut opsets)?,
                function::DOMAIN => domain = field.text().map_err(&fail)?,
                function::ATTRIBUTE_PROTO => defaults.push(self.attribute(&field, 0)?),
                function::VALUE_INFO => declared.push(value_info(&field)?),
                function::OVERLOAD => overload = field.text().map_err(&fail)?,
                _ => {}
            }
        }
        for (name, kind) in declared {
            builder.declare(name, kind);
        }
        for output in outputs {
            builder.output(output, None);
        }
        builder.graph.name = name.to_owned();
        Ok(Function {
            domain: standard(domain),
            name: name.to_owned(),
            overload: overload.to_owned(),
            opsets,
            defaults,
            graph: builder.finish(&format!("function {name}"))?,
        })
    }

    /// A graph whose captures are still names.
    fn graph(&self, message: &[u8], depth: usize) -> Result<Builder, LoadError> {
        if depth > DEPTH {
            return Err(LoadError::TooDeep(DEPTH));
        }
        let fail = broken("GraphProto");
        let mut builder = Builder::default();
        let (mut outputs, mut declared) = (Vec::new(), Vec::new());
        for field in Fields::new(message) {
            let field = field.map_err(&fail)?;
            match field.number {
                graph::NODE => self.node(&field, &mut builder, depth)?,
                graph::NAME => builder.graph.name = field.text().map_err(&fail)?.to_owned(),
                graph::INITIALIZER => builder.initializer(self.tensor(&field)?)?,
                graph::INPUT => {
                    let (name, declared) = value_info(&field)?;
                    builder.input(name, declared)?;
                }
                graph::OUTPUT => outputs.push(value_info(&field)?),
                graph::VALUE_INFO => declared.push(value_info(&field)?),
                graph::SPARSE_INITIALIZER => {
                    return Err(LoadError::Unsupported("a sparse initializer".into()));
                }
                _ => {}
            }
        }
        for (name, kind) in declared {
            builder.declare(name, kind);
        }
        for (name, kind) in outputs {
            builder.output(name, kind);
        }
        Ok(builder)
    }

    fn node(
        &self,
        field: &Field<'_>,
        builder: &mut Builder,
        depth: usize,
    ) -> Result<(), LoadError> {
        let fail = broken("NodeProto");
        let mut node = Node::default();
        let index = builder.graph.nodes.len();
        for field in field.fields().map_err(&fail)? {
            let field = field.map_err(&fail)?;
            match field.number {
                node::INPUT => {
                    let name = field.text().map_err(&fail)?;
                    node.inputs.push((!name.is_empty()).then(|| builder.read(name)));
                }
                node::OUTPUT => {
                    let name = field.text().map_err(&fail)?;
                    let id: Option<ValueId> = match name {
                        "" => None,
                        name => Some(builder.produce(name, index)?),
                    };
                    node.outputs.push(id);
                }
                node::NAME => node.name = field.text().map_err(&fail)?.to_owned(),
                node::OP_TYPE => node.op = field.text().map_err(&fail)?.to_owned(),
                node::ATTRIBUTE => node.attributes.push(self.attribute(&field, depth)?),
                node::DOMAIN => node.domain = standard(field.text().map_err(&fail)?),
                node::OVERLOAD => node.overload = field.text().map_err(&fail)?.to_owned(),
                _ => {}
            }
        }
        if node.op.is_empty() {
            return Err(LoadError::NoOperator { node: index });
        }
        builder.graph.nodes.push(node);
        Ok(())
    }

    fn attribute(&self, field: &Field<'_>, depth: usize) -> Result<Attribute, LoadError> {
        let fail = broken("AttributeProto");
        let mut name = "";
        let (mut floats, mut ints, mut texts, mut graphs) = (vec![], vec![], vec![], vec![]);
        let mut kind = 0;
        let mut value = None;
        for field in field.fields().map_err(&fail)? {
            let field = field.map_err(&fail)?;
            match field.number {
                attribute::NAME => name = field.text().map_err(&fail)?,
                attribute::F => value = Some(AttributeValue::Float(field.float().map_err(&fail)?)),
                attribute::I => value = Some(AttributeValue::Int(field.int().map_err(&fail)?)),
                attribute::S => {
                    value = Some(AttributeValue::Text(field.bytes().map_err(&fail)?.to_vec()));
                }
                attribute::T => value = Some(AttributeValue::Tensor(self.tensor(&field)?.into())),
                attribute::G | attribute::GRAPHS => graphs.push(self.subgraph(&field, depth)?),
                attribute::FLOATS => {
                    let mut bytes = Vec::new();
                    field.fixed::<4>(&mut bytes).map_err(&fail)?;
                    floats.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)));
                }
                attribute::INTS => {
                    field.ints(|number| ints.push(number.cast_signed())).map_err(&fail)?;
                }
                attribute::STRINGS => texts.push(field.bytes().map_err(&fail)?.to_vec()),
                attribute::TYPE => kind = field.int().map_err(&fail)?,
                attribute::REF_ATTR_NAME => {
                    let of = field.text().map_err(&fail)?.to_owned();
                    if !of.is_empty() {
                        value = Some(AttributeValue::Reference(of));
                    }
                }
                _ => {}
            }
        }
        // Numbers of `AttributeType`; before IR 3 there was none, and the fields speak.
        let value = match (u64::try_from(kind).unwrap_or(0), value) {
            (_, Some(AttributeValue::Reference(of))) => AttributeValue::Reference(of),
            (attribute_type::FLOATS, _) => AttributeValue::Floats(floats),
            (attribute_type::INTS, _) => AttributeValue::Ints(ints),
            (attribute_type::STRINGS, _) => AttributeValue::Texts(texts),
            (attribute_type::GRAPH | attribute_type::GRAPHS, _) => AttributeValue::Graphs(graphs),
            // A number of 0 or a text of no length need not be written at all.
            (attribute_type::FLOAT, None) => AttributeValue::Float(0.0),
            (attribute_type::INT, None) => AttributeValue::Int(0),
            (attribute_type::STRING, None) => AttributeValue::Text(Vec::new()),
            (_, Some(value)) => value,
            (0, None) if !graphs.is_empty() => AttributeValue::Graphs(graphs),
            (0, None) if !ints.is_empty() => AttributeValue::Ints(ints),
            (0, None) if !floats.is_empty() => AttributeValue::Floats(floats),
            (0, None) if !texts.is_empty() => AttributeValue::Texts(texts),
            _ => AttributeValue::Other,
        };
        Ok(Attribute { name: name.to_owned(), value })
    }

    fn subgraph(&self, field: &Field<'_>, depth: usize) -> Result<Graph, LoadError> {
        let message = field.bytes().map_err(broken("AttributeProto"))?;
        self.graph(message, depth + 1)?.nested()
    }

    fn tensor(&self, field: &Field<'_>) -> Result<Tensor, LoadError> {
        let message = field.bytes().map_err(broken("TensorProto"))?;
        Tensor::decode(message, &self.buffer, self.place)
            .map_err(|(name, why)| LoadError::Tensor { name, why })
    }
}

/// `ai.onnx` is another name of the standard domain.
fn standard(domain: &str) -> String {
    if domain == "ai.onnx" { String::new() } else { domain.to_owned() }
}

fn opset(field: &Field<'_>, opsets: &mut BTreeMap<String, i64>) -> Result<(), LoadError> {
    let fail = broken("OperatorSetIdProto");
    let (mut domain, mut version) = ("", 0);
    for field in field.fields().map_err(&fail)? {
        let field = field.map_err(&fail)?;
        match field.number {
            schema::opset::DOMAIN => domain = field.text().map_err(&fail)?,
            schema::opset::VERSION => version = field.int().map_err(&fail)?,
            _ => {}
        }
    }
    opsets.insert(standard(domain), version);
    Ok(())
}

fn value_info<'a>(field: &Field<'a>) -> Result<(&'a str, Option<Declared>), LoadError> {
    let fail = broken("ValueInfoProto");
    let (mut name, mut declared) = ("", None);
    for field in field.fields().map_err(&fail)? {
        let field = field.map_err(&fail)?;
        match field.number {
            schema::value_info::NAME => name = field.text().map_err(&fail)?,
            schema::value_info::TYPE => declared = kind(&field)?,
            _ => {}
        }
    }
    Ok((name, declared))
}

fn kind(field: &Field<'_>) -> Result<Option<Declared>, LoadError> {
    let fail = broken("TypeProto");
    let mut declared = None;
    for field in field.fields().map_err(&fail)? {
        let field = field.map_err(&fail)?;
        match field.number {
            value_type::TENSOR => {
                let (mut element, mut dims) = (None, None);
                for field in field.fields().map_err(&fail)? {
                    let field = field.map_err(&fail)?;
                    match field.number {
                        tensor_type::ELEM_TYPE => {
                            let code = i32::try_from(field.int().map_err(&fail)?);
                            element = code.ok().and_then(ElementType::from_code);
                        }
                        tensor_type::SHAPE => dims = Some(shape(&field).map_err(&fail)?),
                        _ => {}
                    }
                }
                declared = Some(Declared::Tensor { element, dims });
            }
            value_type::SEQUENCE
            | value_type::MAP
            | value_type::OPAQUE
            | value_type::SPARSE_TENSOR
            | value_type::OPTIONAL => declared = Some(Declared::Other),
            _ => {}
        }
    }
    Ok(declared)
}

fn shape(field: &Field<'_>) -> Result<Vec<DeclaredDim>, WireError> {
    let mut dims = Vec::new();
    for field in field.fields()? {
        let field = field?;
        if field.number == schema::shape::DIM {
            dims.push(declared_dim(&field)?);
        }
    }
    Ok(dims)
}

/// A size as `TensorShapeProto.Dimension` declares it.
pub(crate) fn declared_dim(field: &Field<'_>) -> Result<DeclaredDim, WireError> {
    let mut size = DeclaredDim::Unknown;
    for field in field.fields()? {
        let field = field?;
        match field.number {
            // Some exporters write -1 for a size that is not known.
            dim::VALUE => {
                size =
                    usize::try_from(field.int()?).map_or(DeclaredDim::Unknown, DeclaredDim::Size);
            }
            dim::PARAM if !field.bytes()?.is_empty() => size = DeclaredDim::named(field.text()?),
            _ => {}
        }
    }
    Ok(size)
}
