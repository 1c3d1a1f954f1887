//! The messages: how each begins, and what is read after that.

use simulcast_core::{Dims, OwnedRule, Strictness};

use super::scan::{Folded, Reader, last, near};
use super::{Clash, Library, Message};

/// A message of a library: the words by which it is found, and what to read after them.
pub(super) struct Pattern {
    library: Library,
    words: &'static str,
    read: fn(&mut Reader<'_>, &str) -> Option<Found>,
}

/// What was read.
struct Found {
    rule: OwnedRule,
    strictness: Strictness,
    shapes: Vec<Dims>,
    names: &'static [&'static str],
    operation: Option<String>,
    node: Option<String>,
    clash: Option<Clash>,
    is_warning: bool,
}

impl Found {
    fn under(rule: OwnedRule, shapes: Vec<Dims>) -> Option<Self> {
        (!shapes.is_empty()).then(|| Self { shapes, ..Self::silent(rule) })
    }

    fn numpy(shapes: Vec<Dims>) -> Option<Self> {
        (shapes.len() > 1).then_some(())?;
        Self::under(OwnedRule::Numpy, shapes)
    }

    fn exact(shapes: Vec<Dims>) -> Option<Self> {
        (shapes.len() > 1).then_some(())?;
        Self::under(OwnedRule::Exact, shapes)
    }

    /// A shape that had to become another.
    fn to(shape: Dims, target: &Dims) -> Option<Self> {
        Self::under(OwnedRule::To { target: target.sizes()? }, vec![shape])
    }

    /// A message without shapes.
    fn silent(rule: OwnedRule) -> Self {
        Self {
            rule,
            strictness: Strictness::Numpy,
            shapes: Vec::new(),
            names: &[],
            operation: None,
            node: None,
            clash: None,
            is_warning: false,
        }
    }

    fn clash(first: usize, second: usize, axis: Option<usize>) -> Self {
        let clash = Some(Clash { sizes: (first, second), axis });
        Self { clash, ..Self::silent(OwnedRule::Numpy) }
    }

    fn of(self, operation: Option<&str>) -> Self {
        Self { operation: operation.map(Into::into), ..self }
    }

    fn at(self, node: Option<&str>) -> Self {
        Self { node: node.map(Into::into), ..self }
    }

    fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }
}

const fn pattern(
    library: Library,
    words: &'static str,
    read: fn(&mut Reader<'_>, &str) -> Option<Found>,
) -> Pattern {
    Pattern { library, words, read }
}

/// Every message. `before` is the text in front of the words.
static PATTERNS: [Pattern; 33] = [
    pattern(Library::Numpy, "operands could not be broadcast together with shapes", |at, _| {
        Found::numpy(at.shapes())
    }),
    pattern(
        Library::Numpy,
        "operands could not be broadcast together with remapped shapes [original->remapped]:",
        |at, _| remapped(at),
    ),
    pattern(
        Library::Numpy,
        "shape mismatch: objects cannot be broadcast to a single shape",
        |at, before| {
            // PyTorch says these words alone, and before them nothing of an argument.
            let Some(()) = at.take(". Mismatch is between arg") else {
                return (!before.ends_with("RuntimeError: "))
                    .then(|| Found::silent(OwnedRule::Numpy));
            };
            at.number()?;
            at.take("with shape")?;
            let first = at.shape()?;
            at.take("and arg")?;
            at.number()?;
            at.take("with shape")?;
            Found::numpy(vec![first, at.shape()?])
        },
    ),
    pattern(Library::Numpy, "could not broadcast input array from shape", |at, _| {
        let value = at.shape()?;
        at.take("into shape")?;
        Some(Found::to(value, &at.shape()?)?.named(&["value"]))
    }),
    pattern(Library::Numpy, "shape mismatch: value array of shape", |at, _| {
        let value = at.shape()?;
        at.take("could not be broadcast to indexing result of shape")?;
        Some(Found::to(value, &at.shape()?)?.named(&["value"]))
    }),
    pattern(
        Library::Numpy,
        "shape mismatch: indexing arrays could not be broadcast together with shapes",
        |at, _| Found::numpy(at.shapes()),
    ),
    pattern(Library::Numpy, "non-broadcastable output operand with shape", |at, _| into_output(at)),
    pattern(Library::Numpy, "cannot broadcast a non-scalar to a scalar array", |_, _| {
        Some(Found::silent(OwnedRule::To { target: Vec::new() }))
    }),
    pattern(
        Library::Numpy,
        "input operand has more dimensions than allowed by the axis remapping",
        |_, _| Some(Found::silent(OwnedRule::Numpy)),
    ),
    pattern(Library::Torch, "The size of tensor a (", |at, _| {
        let first = at.number()?;
        at.take(") must match the size of tensor b (")?;
        let second = at.number()?;
        at.take(") at non-singleton dimension")?;
        Some(Found::clash(first, second, Some(at.number()?)).named(&["a", "b"]))
    }),
    pattern(Library::Torch, "The expanded size of the tensor (", |at, _| {
        at.take_until("Target sizes:")?;
        let target = at.shape()?;
        at.take_until("Tensor sizes:")?;
        Found::to(at.shape()?, &target)
    }),
    pattern(Library::Torch, "expand(torch.", |at, _| {
        at.take_until("Tensor{")?;
        let own = at.shape()?;
        at.take("}, size=")?;
        Some(Found::to(own, &at.shape()?)?.of(Some("expand")))
    }),
    pattern(Library::Torch, "output with shape", |at, _| into_output(at)),
    pattern(Library::Torch, "shape mismatch: value tensor of shape", |at, _| {
        let value = at.shape()?;
        at.take("cannot be broadcast to indexing result of shape")?;
        Some(Found::to(value, &at.shape()?)?.named(&["value"]))
    }),
    pattern(
        Library::Torch,
        "shape mismatch: indexing tensors could not be broadcast together with shapes",
        |at, _| Found::numpy(at.shapes()),
    ),
    pattern(Library::Torch, "Attempting to broadcast a dimension of length", |at, _| {
        at.take_until("Mismatching argument at index")?;
        at.number()?;
        at.take("had")?;
        let argument = at.shape()?;
        at.take("; but expected shape should be broadcastable to")?;
        Found::numpy(vec![at.shape()?, argument])
    }),
    pattern(Library::Torch, "Value is not broadcastable with batch_shape+event_shape:", |at, _| {
        let value = at.shape()?;
        at.take("vs")?;
        Some(Found::numpy(vec![value, at.shape()?])?.named(&["value", "distribution"]))
    }),
    pattern(Library::Torch, "Using a target size (", |at, _| {
        let target = at.shape()?;
        at.take(") that is different to the input size (")?;
        let input = at.shape()?;
        at.take(")")?;
        let shapes = vec![input, target];
        let found = match at.take("is deprecated") {
            Some(()) => Found::exact(shapes)?,
            None => Found { is_warning: true, ..Found::numpy(shapes)? },
        };
        Some(found.named(&["input", "target"]))
    }),
    pattern(Library::Torch, "Target size (", |at, _| {
        let target = at.shape()?;
        at.take(") must be")?;
        at.take_until("input size (")?;
        Some(Found::exact(vec![at.shape()?, target])?.named(&["input", "target"]))
    }),
    pattern(Library::Jax, "Incompatible shapes for broadcasting: ", |at, _| {
        let target =
            |found: &mut Reader<'_>| found.take("and requested shape").and_then(|()| found.shape());
        if let Some(()) = at.take("shapes=[") {
            return Found::numpy(at.shapes());
        }
        // Older versions print a tuple of shapes.
        if let Some(()) = at.take("((") {
            at.place -= 1;
            return Found::numpy(at.shapes());
        }
        let own = at.shape()?;
        Found::to(own, &target(at)?)
    }),
    pattern(Library::Jax, "Incompatible types for broadcasting: input type=", |at, _| {
        let own = at.shape()?;
        at.take("and requested type=")?;
        Found::to(own, &at.shape()?)
    }),
    pattern(Library::Jax, " got incompatible shapes for broadcasting:", |at, before| {
        Some(Found::exact(at.shapes())?.of(last_word(before)))
    }),
    pattern(Library::Jax, ": arrays must have the same number of dimensions, got", |_, before| {
        Some(Found::silent(OwnedRule::Exact).of(last_word(before)))
    }),
    pattern(
        Library::Jax,
        "Cannot broadcast to shape with fewer dimensions: arr_shape=",
        |at, _| {
            let own = at.shape()?;
            at.take("shape=")?;
            Found::to(own, &at.shape()?)
        },
    ),
    pattern(Library::Jax, "Operands could not be broadcast together for ", |at, _| promoted(at)),
    pattern(Library::Jax, "Following NumPy automatic rank promotion for ", |at, _| {
        Some(Found { is_warning: true, strictness: Strictness::Numpy, ..promoted(at)? })
    }),
    pattern(Library::TensorFlow, "Incompatible shapes: ", |at, _| {
        let first = at.shape()?;
        at.take("vs.")?;
        let second = at.shape()?;
        let operation = tensorflow_operation(at);
        let found = match operation {
            Some("BroadcastTo") => Found::to(first, &second)?,
            _ => Found::numpy(vec![first, second])?,
        };
        Some(found.of(operation))
    }),
    pattern(Library::TensorFlow, " must be broadcastable", |at, before| {
        let words = "condition ";
        let start = last(before, 600).rfind(words)?;
        let mut back = Reader::new(last(before, 600), start + words.len());
        let condition = back.shape()?;
        back.take(", then")?;
        let then = back.shape()?;
        back.take(", and else")?;
        let found = Found::numpy(vec![condition, then, back.shape()?])?;
        Some(found.of(tensorflow_operation(at)).named(&["condition", "then", "else"]))
    }),
    pattern(
        Library::TensorFlow,
        "Incompatible shapes for broadcasting. Two shapes are compatible",
        |at, _| {
            at.take_until("Received:")?;
            Found::numpy(at.shapes())
        },
    ),
    pattern(Library::TensorFlow, "Dimensions must be equal, but are", |at, _| {
        at.take_until("= ")?;
        let operation = at.word()?;
        // Products and convolutions use these words too.
        if !TENSORFLOW_BINARY.contains(&operation) {
            return None;
        }
        at.take_until("with input shapes:")?;
        Some(Found::numpy(at.shapes())?.of(Some(operation)))
    }),
    pattern(Library::TensorFlow, "required broadcastable shapes", |at, _| {
        Some(Found::silent(OwnedRule::Numpy).of(tensorflow_operation(at)))
    }),
    pattern(
        Library::OnnxRuntime,
        "Attempting to broadcast an axis by a dimension other than 1.",
        |at, before| {
            let first = at.number()?;
            at.take("by")?;
            let found = Found::clash(first, at.number()?, None);
            let (operation, node) = onnxruntime_node(before);
            Some(found.of(operation).at(node))
        },
    ),
    pattern(Library::OnnxRuntime, "operand cannot broadcast on dim", |at, before| {
        at.take_until("LeftShape:")?;
        let left = at.shape()?;
        at.take(", RightShape:")?;
        let (operation, node) = onnxruntime_node(before);
        Some(Found::numpy(vec![left, at.shape()?])?.of(operation).at(node))
    }),
];

/// Messages whose operation stands before their words.
static TRAILING: [Pattern; 4] = [
    pattern(Library::TensorFlow, ", shapes must be equal.", |_, before| {
        let near = last(before, 400);
        let words = "Cannot update variable with shape";
        let mut back = Reader::new(near, near.rfind(words)? + words.len());
        let variable = back.shape()?;
        back.take("using a Tensor with shape")?;
        Some(Found::exact(vec![variable, back.shape()?])?.named(&["variable", "value"]))
    }),
    pattern(Library::OnnxRuntime, "[ShapeInferenceError] Incompatible dimensions", |_, before| {
        let near = last(before, 400);
        let between = |open: &str| near.rsplit_once(open)?.1.split_once(')').map(|(word, _)| word);
        Some(Found::silent(OwnedRule::Numpy).of(between("Op (")).at(between("Node (")))
    }),
    pattern(Library::OpenVino, "Argument shapes are inconsistent", |_, before| {
        openvino_shapes(before)
    }),
    pattern(Library::OpenVino, "Eltwise shape infer input shapes dim index:", |_, before| {
        let near = last(before, 1000);
        let node = near.rsplit_once("node with name '")?;
        let operation = last_word(node.0);
        Some(Found::silent(OwnedRule::Numpy).of(operation).at(node.1.split('\'').next()))
    }),
];

fn all() -> impl Iterator<Item = &'static Pattern> {
    PATTERNS.iter().chain(&TRAILING)
}

/// Where messages begin, in the order of the text.
pub(super) fn occurrences(text: &str) -> Vec<(usize, &'static Pattern)> {
    let places = |pattern: &'static Pattern| {
        text.match_indices(pattern.words).map(move |(start, _)| (start, pattern))
    };
    let mut found: Vec<_> = all().flat_map(places).collect();
    found.sort_by_key(|(start, _)| *start);
    found
}

/// The message that begins at a place.
pub(super) fn read(folded: &Folded, start: usize, pattern: &Pattern) -> Option<Message> {
    let before = folded.text.get(..start)?;
    let mut reader = Reader::new(&folded.text, start + pattern.words.len());
    let found = (pattern.read)(&mut reader, before)?;
    Some(Message {
        library: pattern.library,
        operation: found.operation,
        node: found.node,
        rule: found.rule,
        strictness: found.strictness,
        shapes: found.shapes,
        names: found.names.iter().map(|name| (*name).into()).collect(),
        clash: found.clash,
        is_warning: found.is_warning,
        span: folded.original(start)..folded.original(reader.place),
        line: 0,
        place: None,
    })
}

/// `(3,) and requested shape (2,)`, or `(2,4,4)->(2,newaxis,newaxis) (3,4,4)->(3,newaxis,newaxis)`.
fn remapped(at: &mut Reader<'_>) -> Option<Found> {
    let (mut own, mut laid) = (Vec::new(), Vec::new());
    while let Some(shape) = at.shape() {
        let is_remapped = at.rest().starts_with("->");
        laid.push(match is_remapped {
            true => at.take("->").and_then(|()| at.shape())?,
            false => shape.clone(),
        });
        own.push((shape, is_remapped));
    }
    match (&own[..], at.take("and requested shape")) {
        ([(shape, false)], Some(())) => Found::to(shape.clone(), &at.shape()?),
        _ => Found::numpy(laid),
    }
}

/// `[3] doesn't match the broadcast shape [3, 3]`: the operands' common shape has to become the output's.
fn into_output(at: &mut Reader<'_>) -> Option<Found> {
    let output = at.shape()?;
    at.take("doesn't match the broadcast shape")?;
    Some(Found::to(at.shape()?, &output)?.named(&["operands"]))
}

/// `add on shapes (2, 3) (3,)`: JAX, told not to pad ranks.
fn promoted(at: &mut Reader<'_>) -> Option<Found> {
    let operation = at.word()?;
    at.take("on shapes")?;
    let found = Found::numpy(at.shapes())?.of(Some(operation));
    Some(Found { strictness: Strictness::SameRank, ..found })
}

/// TensorFlow's element-wise operations of two operands.
const TENSORFLOW_BINARY: [&str; 32] = [
    "Add",
    "AddV2",
    "ApproximateEqual",
    "Atan2",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Complex",
    "Div",
    "DivNoNan",
    "Equal",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Mod",
    "Mul",
    "MulNoNan",
    "NotEqual",
    "Pow",
    "RealDiv",
    "SquaredDifference",
    "Sub",
    "TruncateDiv",
    "TruncateMod",
    "Xdivy",
];

/// The operation of `[Op:AddV2]`, which follows soon.
fn tensorflow_operation<'t>(at: &mut Reader<'t>) -> Option<&'t str> {
    let ahead = near(at.rest(), 200);
    let start = ahead.find("[Op:")?;
    let mut next = *at;
    next.place += start + "[Op:".len();
    let operation = next.word()?;
    *at = next;
    // The name of a function that TensorFlow made says nothing.
    (!operation.starts_with("__inference")).then_some(operation)
}

/// The operation and the node of `while running Add node. Name:'/head/Add'`.
fn onnxruntime_node(before: &str) -> (Option<&str>, Option<&str>) {
    let near = last(before, 1000);
    let Some((_, after)) = near.rsplit_once("while running ") else { return (None, None) };
    let operation = after.split_once(" node").map(|(word, _)| word);
    let node = after.split_once("Name:'").and_then(|(_, name)| name.split('\'').next());
    (operation, node.filter(|name| !name.is_empty()))
}

/// The shapes of `While validating node 'opset1::Add Add_3 (opset1::Parameter a[0]:f32[2,3], …) -> ()'`.
fn openvino_shapes(before: &str) -> Option<Found> {
    let near = last(before, 4000);
    let (_, node) = near.rsplit_once("While validating node '")?;
    let (name, operands) = node.split_once('(')?;
    let (operands, _) = operands.split_once(") -> ")?;
    let shapes = operands
        .match_indices("]:")
        .map(|(place, mark)| Reader::new(operands, place + mark.len()).shape());
    let mut words = name.split_whitespace();
    let operation = words.next().map(|word| word.rsplit("::").next().unwrap_or(word));
    Some(Found::numpy(shapes.collect::<Option<_>>()?)?.of(operation).at(words.next()))
}

/// The last word of a text: the operation that JAX names before its message.
fn last_word(before: &str) -> Option<&str> {
    let word =
        before.trim_end().rsplit(|c: char| c != '_' && c != '.' && !c.is_alphanumeric()).next()?;
    (!word.is_empty()).then_some(word)
}
