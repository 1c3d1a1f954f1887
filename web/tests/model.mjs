// ONNX models, written byte by byte.

function varint(value) {
  const out = [];
  for (let left = BigInt.asUintN(64, BigInt(value)); ; left >>= 7n) {
    if (left < 128n) return [...out, Number(left)];
    out.push(Number(left & 127n) | 128);
  }
}

/** Fields as `[number, value]`: numbers as varints, texts and bytes as they are. */
export const message = (...fields) => fieldsOf(fields);

function fieldsOf(fields) {
  return Buffer.concat(fields.filter(Boolean).map(([number, value]) => {
    if (typeof value === "number" || typeof value === "bigint") return Buffer.from([...varint(number << 3), ...varint(value)]);
    const bytes = Buffer.from(value);
    return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(bytes.length)]), bytes]);
  }));
}

export const node = (op, inputs, outputs, ...more) => [1, message(...inputs.map((name) => [1, name]), ...outputs.map((name) => [2, name]), [3, outputs[0]], [4, op], ...more)];

const value = (name, dims) => message([1, name], [2, message([1, message([1, 1], dims && [2, message(...dims.map((dim) => [1, message(typeof dim === "number" ? [1, dim] : [2, dim])]))])])]);
export const input = (name, dims) => [11, value(name, dims)];
export const output = (name, dims) => [12, value(name, dims)];

/** A tensor of int64 whose values are given, or lie in a file beside the model. */
export const int64s = (name, values, location) => [5, message([1, values.length], [2, 7], [8, name],
  ...(location ? [[13, message([1, "location"], [2, location])], [14, 1]] : [[9, raw(values)]]))];

export const raw = (values) => Buffer.concat(values.map((value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}));

export const graphAttribute = (name, graph) => [5, message([1, name], [6, graph], [20, 5])];

export const model = (graph, { opset = 17, more = [] } = {}) => message([1, 8], [8, message([2, opset])], [8, message([1, "own"], [2, 1])], [7, fieldsOf([[2, "graph"], ...graph])], ...more);

/** A chain of so many nodes; every third one repeats a row or a column. */
export function chain(nodes) {
  const graph = [input("x", ["N", 64]), input("row", [64]), input("column", ["N", 1])];
  for (let at = 0; at < nodes; at += 1) {
    const before = at ? `v${at - 1}` : "x";
    graph.push(at % 3 === 0 ? node("Add", [before, "row"], [`v${at}`]) : at % 3 === 1 ? node("Mul", [before, "column"], [`v${at}`]) : node("Relu", [before], [`v${at}`]));
  }
  return model([...graph, output(`v${nodes - 1}`)]);
}

/** Functions that call each other without end, or ten times each. */
function calls(names, times) {
  const call = (name, from, to) => message([1, from], [2, to], [4, name], [7, "own"]);
  const functions = names.map((name, at) => [25, message([1, name], [4, "x"], [5, "y0"],
    ...Array.from({ length: times }, (_, own) => [7, call(names[at + 1] ?? names[0], "x", `y${own}`)]), [9, message([2, 17])], [10, "own"])]);
  return model([input("x", [2]), [1, call(names[0], "x", "y")], output("y")], { more: functions });
}

function nested(depth) {
  let graph = message();
  for (let at = 0; at < depth; at += 1) graph = message([1, message([2, "y"], [4, "If"], graphAttribute("then_branch", graph))]);
  return message([1, 8], [8, message([2, 17])], [7, graph]);
}

/** Models of somebody who means harm: each is an error, soon. */
export const HOSTILE = {
  "a text": Buffer.from("hello, this is a text"),
  nothing: Buffer.alloc(0),
  "a second graph": Buffer.concat([model([input("x", [2]), node("Relu", ["x"], ["y"])]), Buffer.from([0x3a, 0])]),
  "graphs nested without end": nested(2000),
  "nodes that wait for each other": model([input("x", [2]), node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), output("b")]),
  "a name that is produced twice": model([input("x", [2]), node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]),
  "a value that nothing produces": model([input("x", [2]), node("Add", ["x", "ghost"], ["y"])]),
  "a length that lies": Buffer.from([0x3a, 0xff, 0xff, 0xff, 0x7f]),
  "sizes that multiply": model([[5, message([1, 1n << 40n], [1, 1n << 40n], [2, 7], [8, "w"], [9, ""])]]),
  "a negative size": model([[5, message([1, -1], [2, 7], [8, "w"], [9, ""])]]),
  "a function that calls itself": calls(["f0"], 1),
  "functions that multiply": calls(Array.from({ length: 30 }, (_, at) => `f${at}`), 10),
  "data in another folder": model([input("x", [4]), int64s("s", [2, 2], "../../etc/passwd"), node("Reshape", ["x", "s"], ["y"]), output("y")]),
};
