//! Models of many nodes: loaded and checked, with sizes that are not known.
//!
//! Blocks of a transformer, as exporters write them: shapes computed from shapes, normalizations and
//! activations in single nodes. Written here rather than stored, so that a case says how many nodes.

use std::fmt::Write as _;
use std::hint::black_box;

use simulcast_onnx::{CheckPolicy, Model, check};

use crate::case::Case;
use crate::measure::Task;

/// The bytes of a model, loaded, inferred, checked and shown.
pub fn task(case: &Case) -> Task {
    let bytes = Writer::new(case.elements()).model();
    let once = move || {
        let model = Model::from_bytes(&bytes).expect("a model");
        let found = check(&model, &[], &CheckPolicy::default()).expect("no symbol is set");
        assert_eq!(found.errors(), 0, "the model is sound");
        black_box(found.text(&model, Default::default()));
    };
    Box::new(once)
}

const HEADS: usize = 2;
const WIDTH: usize = 16;
const FLOAT: u64 = 1;
const INT64: u64 = 7;

/// A message of protobuf: fields of numbers, and of bytes.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(mut self, field: u64, value: u64) -> Self {
        self.number(field << 3);
        self.number(value);
        self
    }

    fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.number(field << 3 | 2);
        self.number(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    fn message(self, field: u64, of: Self) -> Self {
        self.bytes(field, of.0)
    }
}

/// A graph as it grows, up to so many nodes.
struct Writer {
    graph: Message,
    left: usize,
    /// What names of this block begin with.
    block: String,
    last: String,
}

impl Writer {
    fn new(nodes: usize) -> Self {
        let value = |name: &str, sizes: &[&str]| {
            let shape = sizes.iter().fold(Message::default(), |shape, size| {
                let dim = Message::default();
                shape.message(
                    1,
                    match size.parse() {
                        Ok(size) => dim.int(1, size),
                        Err(_) => dim.bytes(2, size),
                    },
                )
            });
            let tensor = Message::default().int(1, FLOAT).message(2, shape);
            Message::default().bytes(1, name).message(2, Message::default().message(1, tensor))
        };
        let graph = Message::default()
            .message(11, value("x", &["batch", "time", &WIDTH.to_string()]))
            .message(11, value("mask", &["batch", "1", "1", "time"]));
        let mut writer = Self { graph, left: nodes, block: String::new(), last: "x".into() };
        writer.tensor("two", FLOAT, &[], &2_f32.to_le_bytes());
        writer.tensor("small", FLOAT, &[], &1e-5_f32.to_le_bytes());
        for (name, values) in
            [("zero", &[0][..]), ("one", &[1]), ("heads", &[HEADS]), ("rest", &[usize::MAX])]
        {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            writer.tensor(name, INT64, &[values.len()], &bytes);
        }
        writer
    }

    fn model(mut self) -> Vec<u8> {
        let mut number = 0;
        while self.left > 0 {
            self.block = format!("/layers.{number}");
            self.attention();
            self.feed_forward();
            number += 1;
        }
        let graph = self.graph.message(12, Message::default().bytes(1, &self.last));
        let opset = Message::default().bytes(1, "").int(2, 17);
        Message::default().int(1, 8).message(7, graph).message(8, opset).0
    }

    fn tensor(&mut self, name: &str, element: u64, shape: &[usize], bytes: &[u8]) {
        let sizes = shape.iter().fold(Message::default(), |all, size| all.int(1, *size as u64));
        let tensor = sizes.int(2, element).bytes(8, name).bytes(9, bytes);
        self.graph = std::mem::take(&mut self.graph).message(5, tensor);
    }

    /// Numbers of this block.
    fn weight(&mut self, name: &str, shape: &[usize]) -> String {
        let name = format!("{}.{name}", &self.block[1..]);
        self.tensor(&name, FLOAT, shape, &vec![0; 4 * shape.iter().product::<usize>()]);
        name
    }

    fn node_with(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[&str],
        attributes: Vec<Message>,
    ) -> String {
        let mut output = self.block.clone();
        let _ = write!(output, "/{name}/{op}_output_0");
        if self.left > 0 {
            self.left -= 1;
            let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
            let node = node.bytes(2, &output).bytes(3, output.trim_end_matches("_output_0"));
            let node =
                attributes.into_iter().fold(node.bytes(4, op), |node, own| node.message(5, own));
            self.graph = std::mem::take(&mut self.graph).message(1, node);
            self.last.clone_from(&output);
        }
        output
    }

    fn node(&mut self, op: &str, name: &str, inputs: &[&str]) -> String {
        self.node_with(op, name, inputs, Vec::new())
    }

    fn ints(name: &str, values: &[usize]) -> Message {
        let own = Message::default().bytes(1, name).int(20, 7);
        values.iter().fold(own, |own, value| own.int(8, *value as u64))
    }

    fn linear(&mut self, name: &str, x: &str, shape: [usize; 2]) -> String {
        let (weight, bias) = (
            self.weight(&format!("{name}.weight"), &shape),
            self.weight(&format!("{name}.bias"), &shape[1..]),
        );
        let product = self.node("MatMul", name, &[x, &weight]);
        self.node("Add", name, &[&bias, &product])
    }

    fn normalized(&mut self, name: &str, x: &str) -> String {
        let (weight, bias) = (
            self.weight(&format!("{name}.weight"), &[WIDTH]),
            self.weight(&format!("{name}.bias"), &[WIDTH]),
        );
        let last = || vec![Self::ints("axes", &[usize::MAX])];
        let mean = self.node_with("ReduceMean", &format!("{name}/mean"), &[x], last());
        let centred = self.node("Sub", name, &[x, &mean]);
        let square = self.node("Pow", name, &[&centred, "two"]);
        let variance =
            self.node_with("ReduceMean", &format!("{name}/variance"), &[&square], last());
        let above = self.node("Add", &format!("{name}/above"), &[&variance, "small"]);
        let deviation = self.node("Sqrt", name, &[&above]);
        let unit = self.node("Div", name, &[&centred, &deviation]);
        let scaled = self.node("Mul", name, &[&unit, &weight]);
        self.node("Add", name, &[&scaled, &bias])
    }

    fn attention(&mut self) {
        let x = self.last.clone();
        let sizes = ["zero", "one"].map(|axis| {
            let shape = self.node("Shape", &format!("attention/{axis}"), &[&x]);
            self.node("Gather", &format!("attention/{axis}"), &[&shape, axis])
        });
        let [batch, time] = sizes.each_ref().map(String::as_str);
        let concat = || vec![Message::default().bytes(1, "axis").int(3, 0).int(20, 2)];
        let split =
            self.node_with("Concat", "attention/split", &[batch, time, "heads", "rest"], concat());
        let swapped = || vec![Self::ints("perm", &[0, 2, 1, 3])];
        let parts = ["q", "k", "v"].map(|part| {
            let name = format!("attention/{part}");
            let own = self.linear(&name, &x, [WIDTH, WIDTH]);
            let own = self.node("Reshape", &name, &[&own, &split]);
            let swapped =
                if part == "k" { vec![Self::ints("perm", &[0, 2, 3, 1])] } else { swapped() };
            self.node_with("Transpose", &name, &[&own], swapped)
        });
        let scores = self.node("MatMul", "attention/scores", &[&parts[0], &parts[1]]);
        let scores = self.node("Div", "attention/scale", &[&scores, "two"]);
        let scores = self.node("Add", "attention/mask", &[&scores, "mask"]);
        let scores = self.node("Softmax", "attention", &[&scores]);
        let mixed = self.node("MatMul", "attention/mixed", &[&scores, &parts[2]]);
        let mixed = self.node_with("Transpose", "attention/mixed", &[&mixed], swapped());
        let joined = self.node_with("Concat", "attention/join", &[batch, time, "rest"], concat());
        let mixed = self.node("Reshape", "attention/mixed", &[&mixed, &joined]);
        let out = self.linear("attention/out", &mixed, [WIDTH, WIDTH]);
        let sum = self.node("Add", "attention/residual", &[&x, &out]);
        self.normalized("norm1", &sum);
    }

    fn feed_forward(&mut self) {
        let x = self.last.clone();
        let wide = self.linear("linear1", &x, [WIDTH, 4 * WIDTH]);
        let scaled = self.node("Div", "gelu", &[&wide, "two"]);
        let error = self.node("Erf", "gelu", &[&scaled]);
        let above = self.node("Add", "gelu", &[&error, "two"]);
        let gate = self.node("Mul", "gelu", &[&wide, &above]);
        let gate = self.node("Mul", "gelu/half", &[&gate, "two"]);
        let out = self.linear("linear2", &gate, [4 * WIDTH, WIDTH]);
        let sum = self.node("Add", "residual", &[&x, &out]);
        self.normalized("norm2", &sum);
    }
}
