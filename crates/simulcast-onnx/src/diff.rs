//! Two models side by side: which shapes and broadcasts differ, after simplification or quantization.
//!
//! Values are compared by name. Tools that rewrite models rename and remove values; those are counted, and only what
//! both models have is judged.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde_json::json;
use simulcast_core::Dims;

use crate::Model;
use crate::infer::Inference;
use crate::model::Producer;

/// What differs between two models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDiff {
    /// Values of both whose type or shape differs: the name, and what it is in each.
    pub values: Vec<(String, String, String)>,
    /// Broadcasts of nodes that both have, by the first operand's and the node's names, that differ: what meets in each.
    pub broadcasts: Vec<(String, String, String)>,
    /// Values that only the first model has, those of weights left out.
    pub gone: Vec<String>,
    /// Values that only the second model has, those of weights left out.
    pub added: Vec<String>,
    /// How many values both have.
    pub shared: usize,
}

/// At most this many values that only one model has are named in the text.
const NAMED: usize = 8;

/// Compares two models by what was inferred of them.
///
/// ```
/// use simulcast_onnx::{Model, diff, infer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = Model::load(concat!(env!("CARGO_MANIFEST_DIR"), "/models/loss.onnx"))?;
/// let (free, fixed) = (infer(&model, &[])?, infer(&model, &[("batch", 4)])?);
/// assert!(diff((&model, &free), (&model, &free)).is_empty());
/// assert!(!diff((&model, &free), (&model, &fixed)).is_empty());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn diff(before: (&Model, &Inference), after: (&Model, &Inference)) -> ModelDiff {
    let (old, new) = (values(before.0, before.1), values(after.0, after.1));
    let mut found = ModelDiff::default();
    for (name, was) in &old {
        match new.get(name) {
            None => found.gone.push((*name).to_owned()),
            Some(is) => {
                found.shared += 1;
                if was != is {
                    found.values.push(((*name).to_owned(), was.clone(), is.clone()));
                }
            }
        }
    }
    found.added =
        new.keys().filter(|name| !old.contains_key(*name)).map(|name| (*name).to_owned()).collect();
    let (old, new) = (broadcasts(before.1), broadcasts(after.1));
    let nodes: BTreeSet<&str> = old.keys().copied().filter(|node| new.contains_key(node)).collect();
    for node in nodes {
        if old[node] != new[node] {
            found.broadcasts.push((node.to_owned(), old[node].clone(), new[node].clone()));
        }
    }
    found
}

/// The type and shape of each input and result, by name.
fn values<'m>(model: &'m Model, inference: &Inference) -> BTreeMap<&'m str, String> {
    let all = model.graph.values.iter().zip(&inference.facts);
    let own = all.filter(|(value, _)| match value.producer {
        Producer::Input => value.tensor.is_none(),
        Producer::Node(_) => true,
        _ => false,
    });
    let said = own.map(|(value, fact)| {
        let element = fact.element.map_or("", crate::ElementType::name);
        (value.name.as_str(), format!("{element} {}", fact.dims).trim().to_owned())
    });
    said.collect()
}

/// What meets at each node that broadcasts.
fn broadcasts(inference: &Inference) -> HashMap<&str, String> {
    let said = inference.broadcasts.iter().map(|broadcast| {
        let shapes: Vec<String> = broadcast.outcome.shapes().iter().map(Dims::to_string).collect();
        (broadcast.node.as_str(), format!("{} of {}", broadcast.op, shapes.join(", ")))
    });
    said.collect()
}

impl ModelDiff {
    /// Whether nothing that both models have differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.broadcasts.is_empty()
    }

    /// The difference for scripts.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let each = |all: &[(String, String, String)], what: &str| {
            let one = |(name, before, after): &(String, String, String)| json!({ what: name, "before": before, "after": after });
            all.iter().map(one).collect::<Vec<_>>()
        };
        json!({
            "values": each(&self.values, "value"),
            "broadcasts": each(&self.broadcasts, "node"),
            "gone": self.gone,
            "added": self.added,
            "shared": self.shared,
        })
    }
}

/// A line for each difference.
impl fmt::Display for ModelDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, before, after) in &self.values {
            writeln!(f, "  {name}: {before} became {after}")?;
        }
        for (node, before, after) in &self.broadcasts {
            writeln!(f, "  node {node}: {before} became {after}")?;
        }
        for (what, names) in [("gone", &self.gone), ("new", &self.added)] {
            if !names.is_empty() {
                let some: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
                let more = if names.len() > NAMED { ", …" } else { "" };
                writeln!(f, "  {} {what}: {}{more}", names.len(), some.join(", "))?;
            }
        }
        let (shared, differ) = (self.shared, self.values.len());
        writeln!(
            f,
            "{shared} values are in both; {differ} of them and {} broadcasts differ",
            self.broadcasts.len()
        )
    }
}
