//! Cases: what is computed, on which shapes, of which types.

use serde::{Deserialize, Serialize};

/// The names of operands, in order.
pub const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One line of `cases.json`.
#[derive(Deserialize, Serialize)]
pub struct Case {
    pub name: String,
    /// An expression over the operands `a`, `b`, and so on, in Python's syntax; or `copy`, the first
    /// operand stretched to the result; or `sum_to`, its sum to the result's shape; or
    /// `broadcast_shapes` or `broadcast_to`, which touch no element; or `onnx_check`, a model of as
    /// many nodes as the shape has elements, loaded and checked.
    pub op: String,
    #[serde(rename = "type")]
    pub element: String,
    /// The types of the operands, where not all are the one above.
    pub types: Option<Vec<String>>,
    /// The type of the result, where it is another one.
    pub gives: Option<String>,
    pub shapes: Vec<Vec<usize>>,
    /// The shape of the result, where it is not the common shape.
    pub result: Option<Vec<usize>>,
    /// The operands whose gradients are computed with the value, which is one number; none for the value alone.
    pub grad: Option<Vec<String>>,
    /// Whether the output is allocated by the call.
    #[serde(default)]
    pub fresh: bool,
    /// Whether the first operand is the transpose of what is stored.
    #[serde(default)]
    pub transposed: bool,
    /// Whether the first operand runs backwards along its last axis.
    #[serde(default)]
    pub backwards: bool,
    /// Whether it is one of those that a quick run takes: one of each kind.
    #[serde(default)]
    pub quick: bool,
    /// What the chart calls it, if it is one of the few that are shown there.
    pub chart: Option<String>,
    /// Whether the expression is made ready to run, rather than run.
    #[serde(default)]
    pub compile: bool,
}

impl Case {
    /// The shape of the output.
    pub fn output(&self) -> Vec<usize> {
        let common = || simulcast::broadcast_shapes(&self.shapes).unwrap_or_default();
        self.result.clone().unwrap_or_else(common)
    }

    /// The type of each operand.
    pub fn types(&self) -> Vec<String> {
        self.types.clone().unwrap_or_else(|| vec![self.element.clone(); self.shapes.len()])
    }

    /// The type of the output.
    pub fn gives(&self) -> &str {
        self.gives.as_ref().unwrap_or(&self.element)
    }

    /// Whether elements are touched: what else there is to measure has no floor.
    pub fn moves(&self) -> bool {
        !self.compile
            && !["broadcast_shapes", "broadcast_to", "onnx_check"].contains(&self.op.as_str())
    }

    /// The elements of the largest array.
    pub fn elements(&self) -> usize {
        let all =
            self.shapes.iter().chain([&self.output()]).map(|s| s.iter().product::<usize>()).max();
        all.unwrap_or(1).max(1)
    }

    /// The bytes to read and to write: each input once, each output once.
    pub fn traffic(&self) -> (usize, usize) {
        let bytes = |shape: &[usize], element: &str| {
            let size = match element {
                "f64" | "i64" => 8,
                "f16" | "bf16" => 2,
                "u8" | "i8" | "bool" => 1,
                "string" => size_of::<String>() + 8,
                _ => 4,
            };
            shape.iter().product::<usize>() * size
        };
        let sizes = self.shapes.iter().zip(self.types()).map(|(s, element)| bytes(s, &element));
        let sizes: Vec<usize> = sizes.collect();
        let gradients = NAMES
            .iter()
            .zip(&sizes)
            .filter(|(name, _)| self.grad.iter().flatten().any(|own| own == *name));
        let gradients: usize = gradients.map(|(_, size)| size).sum();
        (sizes.iter().sum(), bytes(&self.output(), self.gives()) + gradients)
    }

    pub fn bytes(&self) -> usize {
        let (read, written) = self.traffic();
        read + written
    }
}
