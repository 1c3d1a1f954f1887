//! Cases: what is computed, on which shapes, of which type.

use serde::{Deserialize, Serialize};

/// One line of `cases.json`.
#[derive(Deserialize, Serialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) op: String,
    #[serde(rename = "type")]
    pub(crate) element: String,
    pub(crate) shapes: Vec<Vec<usize>>,
    /// The shape of a copy or of a sum, where it is not the common shape.
    pub(crate) result: Option<Vec<usize>>,
    /// Whether the output is allocated by the call.
    #[serde(default)]
    pub(crate) fresh: bool,
    /// Whether the first operand is the transpose of what is stored.
    #[serde(default)]
    pub(crate) transposed: bool,
    /// Whether the first operand runs backwards along its last axis.
    #[serde(default)]
    pub(crate) backwards: bool,
    /// Whether it takes too much memory and time for a quick run.
    #[serde(default)]
    pub(crate) huge: bool,
}

impl Case {
    /// The shape of the output.
    pub(crate) fn output(&self) -> Vec<usize> {
        let common = || simulcast::broadcast_shapes(&self.shapes).unwrap_or_default();
        self.result.clone().unwrap_or_else(common)
    }

    /// The elements of the largest array.
    pub(crate) fn elements(&self) -> usize {
        let all =
            self.shapes.iter().chain([&self.output()]).map(|s| s.iter().product::<usize>()).max();
        all.unwrap_or(1).max(1)
    }

    /// The bytes to read and to write: each input once, each output once.
    pub(crate) fn traffic(&self) -> (usize, usize) {
        let size = match self.element.as_str() {
            "f64" | "i64" => 8,
            "f16" | "bf16" => 2,
            "u8" | "i8" | "bool" => 1,
            "string" => size_of::<String>() + 8,
            _ => 4,
        };
        let written = match self.op.as_str() {
            "greater" => 1,
            "normalise" => 4,
            _ => size,
        };
        let count = |shape: &Vec<usize>| shape.iter().product::<usize>();
        let read = self.shapes.iter().map(count).sum::<usize>() * size;
        (read, count(&self.output()) * written)
    }

    pub(crate) fn bytes(&self) -> usize {
        let (read, written) = self.traffic();
        read + written
    }
}
