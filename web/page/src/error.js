// The view of errors: a pasted text, and every broadcasting error in it explained.

import { h, fill, byId, eachFrame } from "./dom.js";
import { axesTable } from "./axes.js";
import { verdict, fixesCard, textCard } from "./parts.js";
import { remember } from "./link.js";

const EXAMPLES = [
  ["NumPy", "Traceback (most recent call last):\n  File \"train.py\", line 41, in <module>\n    loss = ((image - mask) ** 2).mean()\nValueError: operands could not be broadcast together with shapes (2,3,4) (2,4)"],
  ["PyTorch", "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"],
  ["JAX", "TypeError: sub got incompatible shapes for broadcasting: (2, 3, 4), (1, 2, 4)."],
  ["TensorFlow", "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node __wrapped__Sub_device_/job:localhost/replica:0/task:0/device:CPU:0}} Incompatible shapes: [2,3,4] vs. [2,4] [Op:Sub] name:"],
  ["ONNX Runtime", "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Add node. Name:'add' Status Message: Attempting to broadcast an axis by a dimension other than 1. 3 by 2"],
];

/** The longest text that goes into a link. */
const LINKED = 6000;

export class Errors {
  constructor(engine, openShapes) {
    this.engine = engine;
    this.openShapes = openShapes;
    this.update = eachFrame(() => this.explain());
    byId("error-text").addEventListener("input", this.update);
    fill(byId("error-examples"), EXAMPLES.map(([name, text]) => h("button", { type: "button", onclick: () => this.set(text) }, name)));
  }

  set(text) {
    byId("error-text").value = text;
    this.explain();
  }

  fromLink(fields) {
    this.set(fields.get("text") ?? byId("error-text").value);
  }

  explain() {
    const text = byId("error-text").value;
    remember("error", text && text.length <= LINKED ? [["text", text]] : []);
    const out = byId("error-out");
    if (!text.trim()) return fill(out);
    const { answer } = this.engine.call({ do: "error", text });
    if (answer.usage) return fill(out, h("p", { class: "notice" }, answer.usage));
    if (!answer.errors.length) {
      return fill(out, h("section", { class: "card", vars: {} }, h("h2", {}, "No broadcasting error in this text"),
        h("p", { class: "hint" }, "It is looked for in the words of NumPy, PyTorch, JAX, TensorFlow, ONNX Runtime and OpenVINO. Have the shapes? Type them under Shapes.")));
    }
    fill(out, h("div", { class: "cards" }, answer.errors.map((error) => this.card(error))));
  }

  card(error) {
    return h("section", { class: "card wide error-card" },
      h("h2", {}, error.library, error.line && h("span", { class: "badge plain" }, `line ${error.line}`)),
      h("pre", { tabIndex: 0 }, error.message),
      error.shown
        ? [verdict(error.shown), axesTable(error.shown, { step: 1, probe: false }),
          fixesCard(error.shown, (fix) => this.openShapes(fix)),
          h("p", {}, h("button", { type: "button", class: "soft", onclick: () => this.openShapes(error.request) }, "Open under Shapes")),
          textCard(error.shown)]
        : h("p", {}, error.note));
  }
}
