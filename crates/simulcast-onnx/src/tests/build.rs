//! Models built field by field, right or wrong.

use crate::wire::Message;
use crate::{ElementType, Model};

/// A size of an input.
#[derive(Clone, Debug)]
pub(super) enum Size {
    Known(i64),
    Symbol(String),
}

impl From<i64> for Size {
    fn from(size: i64) -> Self {
        Self::Known(size)
    }
}

impl From<&str> for Size {
    fn from(name: &str) -> Self {
        Self::Symbol(name.into())
    }
}

/// A message made by a closure.
pub(super) fn message(fill: impl FnOnce(&mut Message)) -> Message {
    let mut message = Message::default();
    fill(&mut message);
    message
}

pub(super) fn value_info(name: &str, element: i64, sizes: &[Size]) -> Message {
    let shape = message(|shape| {
        for size in sizes {
            shape.message(
                1,
                &message(|dim| match size {
                    Size::Known(size) => dim.int(1, *size),
                    Size::Symbol(name) if name.is_empty() => {}
                    Size::Symbol(name) => dim.bytes(2, name),
                }),
            );
        }
    });
    let tensor = message(|tensor| {
        tensor.int(1, element);
        tensor.message(2, &shape);
    });
    message(|value| {
        value.bytes(1, name);
        value.message(2, &message(|kind| kind.message(1, &tensor)));
    })
}

pub(super) fn int(name: &str, value: i64) -> Message {
    message(|attribute| {
        attribute.bytes(1, name);
        attribute.int(3, value);
        attribute.int(20, 2);
    })
}

pub(super) fn ints(name: &str, values: &[i64]) -> Message {
    message(|attribute| {
        attribute.bytes(1, name);
        values.iter().for_each(|value| attribute.int(8, *value));
        attribute.int(20, 7);
    })
}

pub(super) fn float(name: &str, value: f32) -> Message {
    message(|attribute| {
        attribute.bytes(1, name);
        attribute.float(2, value);
        attribute.int(20, 1);
    })
}

pub(super) fn text(name: &str, value: &str) -> Message {
    message(|attribute| {
        attribute.bytes(1, name);
        attribute.bytes(4, value);
        attribute.int(20, 3);
    })
}

pub(super) fn graph_attribute(name: &str, graph: &Message) -> Message {
    message(|attribute| {
        attribute.bytes(1, name);
        attribute.message(6, graph);
        attribute.int(20, 5);
    })
}

/// An initializer of 64-bit integers.
pub(super) fn int64s(name: &str, dims: &[i64], values: &[i64]) -> Message {
    message(|tensor| {
        dims.iter().for_each(|size| tensor.int(1, *size));
        tensor.int(2, 7);
        values.iter().for_each(|value| tensor.int(7, *value));
        tensor.bytes(8, name);
    })
}

/// An initializer of 32-bit floats.
pub(super) fn float32s(name: &str, dims: &[i64], values: &[f32]) -> Message {
    message(|tensor| {
        dims.iter().for_each(|size| tensor.int(1, *size));
        tensor.int(2, 1);
        values.iter().for_each(|value| tensor.float(4, *value));
        tensor.bytes(8, name);
    })
}

pub(super) fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    message(|node| {
        inputs.iter().for_each(|name| node.bytes(1, name));
        outputs.iter().for_each(|name| node.bytes(2, name));
        node.bytes(4, op);
        attributes.iter().for_each(|attribute| node.message(5, attribute));
    })
}

/// A graph and the model around it.
#[derive(Clone, Debug)]
pub(super) struct Build {
    pub(super) graph: Message,
    functions: Vec<Message>,
    opset: i64,
    ir: i64,
}

impl Build {
    pub(super) fn new(opset: i64) -> Self {
        let ir = if opset < 7 { 3 } else { 8 };
        Self { graph: Message::default(), functions: Vec::new(), opset, ir }
    }

    /// An input of 32-bit floats.
    pub(super) fn input<S: Clone + Into<Size>>(self, name: &str, sizes: &[S]) -> Self {
        let sizes: Vec<Size> = sizes.iter().cloned().map(Into::into).collect();
        self.field(11, &value_info(name, 1, &sizes))
    }

    pub(super) fn output<S: Clone + Into<Size>>(self, name: &str, sizes: &[S]) -> Self {
        let sizes: Vec<Size> = sizes.iter().cloned().map(Into::into).collect();
        self.field(12, &value_info(name, 1, &sizes))
    }

    /// An output of which nothing is declared.
    pub(super) fn bare_output(self, name: &str) -> Self {
        self.field(12, &message(|value| value.bytes(1, name)))
    }

    pub(super) fn int64s(self, name: &str, dims: &[i64], values: &[i64]) -> Self {
        self.field(5, &int64s(name, dims, values))
    }

    pub(super) fn float32s(self, name: &str, dims: &[i64], values: &[f32]) -> Self {
        self.field(5, &float32s(name, dims, values))
    }

    /// An initializer of zeros.
    pub(super) fn zeros(self, name: &str, dims: &[i64]) -> Self {
        let count = dims.iter().product::<i64>();
        self.float32s(name, dims, &vec![0.0; usize::try_from(count).unwrap()])
    }

    /// An input of any element type.
    pub(super) fn typed(self, name: &str, element: ElementType, sizes: &[Size]) -> Self {
        self.field(11, &value_info(name, element.code().into(), sizes))
    }

    /// A node of another domain than the standard one.
    pub(super) fn node_of(
        self,
        domain: &str,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[Message],
    ) -> Self {
        let mut own = node(op, inputs, outputs, attributes);
        own.bytes(7, domain);
        self.field(1, &own)
    }

    pub(super) fn node(
        self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[Message],
    ) -> Self {
        self.field(1, &node(op, inputs, outputs, attributes))
    }

    /// Any field of the graph.
    pub(super) fn field(mut self, number: u64, value: &Message) -> Self {
        self.graph.message(number, value);
        self
    }

    pub(super) fn function(mut self, function: Message) -> Self {
        self.functions.push(function);
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let model = message(|model| {
            model.int(1, self.ir);
            model.message(7, &self.graph);
            model.message(
                8,
                &message(|opset| {
                    opset.bytes(1, "");
                    opset.int(2, self.opset);
                }),
            );
            self.functions.iter().for_each(|function| model.message(25, function));
        });
        model.into_bytes()
    }

    pub(super) fn load(&self) -> Model {
        Model::from_bytes(&self.bytes()).unwrap()
    }
}
