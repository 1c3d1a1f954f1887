//! `simulcast shape --jsonl`: one request a line, one answer a line, in order, errors included.
//!
//! For scripts and other languages; nothing that a line may say stops it. Answers leave out the
//! fixes of an error, which would cost more than the answer itself. For the same reason known sizes are
//! resolved into one buffer for all lines, and not by way of a `Request` and a plan.

use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};

use serde_json::{Map, Value, json};
use simulcast_core::{
    Dim, Dims, NamedAxes, Names, OwnedRule, Parts, Refusal, RuleError, RuleKind, ShapeText, Symbol,
    resolve_dims, resolve_into,
};
use simulcast_explain::{constraint_json, dims_json, refusal_json};

use crate::{Failure, output};

/// Longer lines are refused, so that no line can take all the memory.
const LONGEST: u64 = 4 << 20;

// Implements E_BROADCAST_ANY_FUNC_2250.
pub(crate) fn run() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin());
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let (mut line, mut buffer) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        let reply = if read as u64 == LONGEST && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            bad(format!("a line of more than {LONGEST} bytes"))
        } else {
            reply(&line, &mut buffer)
        };
        serde_json::to_writer(&mut out, &reply).map_err(|error| output::failed(&error.into()))?;
        out.write_all(b"\n").map_err(|error| output::failed(&error))?;
        // Whoever asks line by line is waiting for the answer.
        if input.buffer().is_empty() {
            out.flush().map_err(|error| output::failed(&error))?;
        }
    }
    out.flush().map_err(|error| output::failed(&error))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        let (used, done) = match bytes.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// `E0`: the line is not a request.
fn bad(message: impl Into<String>) -> Value {
    json!({ "error": { "code": "E0", "message": message.into() } })
}

fn refused(refusal: &Refusal) -> Value {
    let mut map = refusal_json(refusal);
    map.insert("message".into(), refusal.to_string().into());
    json!({ "error": map })
}

fn reply(line: &[u8], buffer: &mut Vec<usize>) -> Value {
    let request = match serde_json::from_slice(line.trim_ascii()) {
        _ if line.trim_ascii().is_empty() => return bad("an empty line"),
        Ok(Value::Object(request)) => request,
        Ok(_) => return bad("a request is an object"),
        Err(error) => return bad(format!("not JSON: {error}")),
    };
    match read(&request) {
        Ok((rule, shapes)) => resolve(&rule, &shapes, buffer),
        Err(Unread::Bad(message)) => bad(message),
        Err(Unread::Refused(refusal)) => refused(&refusal),
    }
}

fn resolve(rule: &OwnedRule, shapes: &[Dims], buffer: &mut Vec<usize>) -> Value {
    let sizes: Option<Vec<Vec<usize>>> = shapes.iter().map(Dims::sizes).collect();
    let Some(sizes) = sizes else {
        return match resolve_dims(rule.as_rule(), shapes) {
            Ok(plan) => json!({
                "shape": dims_json(plan.shape()),
                "constraints": plan.constraints().iter().map(|c| constraint_json(c, &Names::default())).collect::<Vec<_>>(),
            }),
            Err(error) => refused(error.refusal()),
        };
    };
    // No result has more axes than the rule's shape and the operands together.
    let rank = sizes.iter().map(Vec::len).sum::<usize>() + rule.target().map_or(0, <[_]>::len);
    buffer.resize(buffer.len().max(rank), 0);
    match resolve_into(rule.as_rule(), &sizes, buffer) {
        Ok(shape) => json!({ "shape": shape }),
        Err(refusal) => refused(&refusal),
    }
}

/// Why a request cannot be resolved.
enum Unread {
    /// It is not a request.
    Bad(String),
    /// It is one that no rule accepts: a negative axis, axes without names.
    Refused(Refusal),
}

impl From<String> for Unread {
    fn from(message: String) -> Self {
        Self::Bad(message)
    }
}

fn read(request: &Map<String, Value>) -> Result<(OwnedRule, Vec<Dims>), Unread> {
    let kind = match request.get("rule") {
        None => RuleKind::Numpy,
        Some(Value::String(name)) => {
            RuleKind::from_name(name).ok_or_else(|| RuleError::unknown(name).to_string())?
        }
        Some(_) => return Err("rule is not a text".to_string().into()),
    };
    let (shapes, names) = read_shapes(request)?;
    let takes = kind.parameters();
    let mut parts = Parts::default();
    if takes.axis {
        parts.axis = read_axis(request)?;
    }
    if let Some(key) = takes.shape {
        let shape = read_sizes(request, key)?;
        if let Some(key) = takes.axes {
            parts.axes = Some(read_axes(request, key, shape.len())?);
        }
        parts.shape = Some(shape);
    }
    if takes.labels {
        let named = NamedAxes::new(&names).map_err(Unread::Refused)?;
        parts.labels = Some(named.labels().to_vec());
    }
    let rule = OwnedRule::from_parts(kind, parts).map(OwnedRule::with_sorted_sets);
    Ok((rule.ok_or_else(|| format!("rule {kind} is not understood"))?, shapes))
}

/// Shapes as lists of sizes, as text, or as objects of named sizes; with the names of their axes.
fn read_shapes(request: &Map<String, Value>) -> Result<(Vec<Dims>, Vec<Vec<String>>), Unread> {
    let Some(Value::Array(given)) = request.get("shapes") else {
        return Err("shapes is not a list".to_string().into());
    };
    let (mut shapes, mut names) = (Vec::with_capacity(given.len()), Vec::new());
    for shape in given {
        let (dims, own) = match shape {
            Value::Array(sizes) => {
                let dims: Result<Vec<Dim>, String> = sizes.iter().map(read_dim).collect();
                (Dims::from(dims?), vec![String::new(); sizes.len()])
            }
            Value::Null => (Dims::Unranked, Vec::new()),
            Value::String(text) => {
                let shape: ShapeText = text.parse().map_err(|error| format!("{error}"))?;
                let own = shape.axis_names();
                (shape.dims, own)
            }
            Value::Object(sizes) => {
                let dims: Result<Vec<Dim>, String> = sizes.values().map(read_dim).collect();
                (Dims::from(dims?), sizes.keys().cloned().collect())
            }
            _ => return Err("a shape is a list of sizes".to_string().into()),
        };
        shapes.push(dims);
        names.push(own);
    }
    match request.get("axes") {
        Some(Value::Array(axes)) => {
            let texts = |own: &Value| -> Option<Vec<String>> {
                own.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
            };
            let axes: Option<Vec<Vec<String>>> = axes.iter().map(texts).collect();
            names = axes.ok_or_else(|| "axes is not a list of lists of names".to_string())?;
        }
        None | Some(Value::Null) => {}
        Some(_) => return Err("axes is not a list of lists of names".to_string().into()),
    }
    Ok((shapes, names))
}

/// A size, a symbol, an interval, or `null` and -1 for one that is not known.
fn read_dim(value: &Value) -> Result<Dim, String> {
    let unread = || format!("{value} is not a size");
    match value {
        Value::Null => Ok(Dim::UNKNOWN),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(size), _) => usize::try_from(size).map(Dim::Size).map_err(|_| unread()),
            (None, Some(-1)) => Ok(Dim::UNKNOWN),
            _ => Err(unread()),
        },
        // An interval, or any text as the name of a symbol.
        Value::String(text) => {
            Ok(text.parse().unwrap_or_else(|_| Dim::Symbol(Symbol::new(text.as_str()))))
        }
        _ => Err(unread()),
    }
}

fn read_sizes(request: &Map<String, Value>, key: &str) -> Result<Vec<usize>, String> {
    let list = request.get(key).and_then(Value::as_array);
    let list = list.ok_or_else(|| format!("{key} is not a list of sizes"))?;
    let size = |value: &Value| {
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| format!("{value} in {key} is not a size"))
    };
    list.iter().map(size).collect()
}

/// Axes; a negative one does not exist, in every rule that takes a list of them.
fn read_axes(request: &Map<String, Value>, key: &str, rank: usize) -> Result<Vec<usize>, Unread> {
    let list = request.get(key).and_then(Value::as_array);
    let list = list.ok_or_else(|| format!("{key} is not a list of axes"))?;
    let axis = |value: &Value| match (value.as_u64(), value.as_i64()) {
        (Some(axis), _) => {
            usize::try_from(axis).map_err(|_| Unread::Bad(format!("{value} is not an axis")))
        }
        (None, Some(axis)) => {
            Err(Unread::Refused(Refusal::Axis { axis: axis.into(), allowed: rank }))
        }
        _ => Err(Unread::Bad(format!("{value} in {key} is not an axis"))),
    };
    list.iter().map(axis).collect()
}

fn read_axis(request: &Map<String, Value>) -> Result<Option<isize>, String> {
    match request.get("axis") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let axis = value.as_i64().and_then(|axis| isize::try_from(axis).ok());
            axis.map(Some).ok_or_else(|| format!("axis {value} is not an axis"))
        }
    }
}
