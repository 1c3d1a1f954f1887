// The view of errors: a pasted text, and every broadcasting error in it explained.

import { h, fill, byId, eachFrame } from "./dom.js";
import { axesTable } from "./axes.js";
import { verdict, fixesCard, findingsCard, textCard } from "./parts.js";
import { takeCard, addressOf, markdown, python } from "./take.js";
import { remember } from "./link.js";

const EXAMPLES = [
  ["NumPy", "Traceback (most recent call last):\n  File \"train.py\", line 41, in <module>\n    masked = image - mask\n             ~~~~~~^~~~~~\nValueError: operands could not be broadcast together with shapes (2,3,4) (2,4)"],
  ["PyTorch", "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"],
  ["JAX", "TypeError: sub got incompatible shapes for broadcasting: (2, 3, 4), (1, 2, 4)."],
  ["TensorFlow", "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node __wrapped__Sub_device_/job:localhost/replica:0/task:0/device:CPU:0}} Incompatible shapes: [2,3,4] vs. [2,4] [Op:Sub] name:"],
  ["ONNX Runtime", "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code returned while running Add node. Name:'add' Status Message: Attempting to broadcast an axis by a dimension other than 1. 3 by 2"],
];

/** The longest text that goes into a link. */
const LINKED = 6000;
/** The most errors of a log that are shown. */
const SHOWN = 30;

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

  /** The text, where it is short enough for a link. */
  pairs() {
    const text = byId("error-text").value;
    return text && text.length <= LINKED ? [["text", text]] : [];
  }

  explain() {
    const text = byId("error-text").value;
    remember("error", this.pairs());
    const out = byId("error-out");
    if (!text.trim()) return fill(out);
    const { answer } = this.engine.call({ do: "error", text });
    if (answer.usage) return fill(out, h("p", { class: "notice" }, answer.usage));
    if (!answer.messages.length) {
      return fill(out, h("section", { class: "card lone" }, h("h2", {}, "No broadcasting error in this text"),
        h("p", { class: "hint" }, "It is looked for in the words of NumPy, PyTorch, JAX, TensorFlow, ONNX Runtime and OpenVINO. Have the shapes? Type them under Shapes.")));
    }
    const [messages, more] = [answer.messages.slice(0, SHOWN), answer.messages.length - SHOWN];
    const explained = messages.filter((message) => message.shown);
    const texts = () => explained.map((message) => message.shown.text.trimEnd()).join("\n\n");
    fill(out, messages.map((message) => this.card(message)), more > 0 && h("p", { class: "hint" }, `and ${more} more errors in this text`),
      explained.length > 0 && this.pairs().length > 0 && h("div", { class: "lone" }, takeCard("error", () => this.pairs(), {
        Markdown: () => markdown(texts(), addressOf("error", this.pairs())),
        Python: () => explained.map((message) => python({ ...message.shown.request, sizes: {} })).join("\n"),
      })));
  }

  card(message) {
    const { shown, place } = message;
    return h("section", { class: "card lone error-card" },
      h("h2", {}, message.title),
      place && h("pre", { class: "source-line", tabIndex: 0 }, place.source),
      shown
        ? [verdict(shown), axesTable(shown),
          fixesCard(shown, this.openShapes), findingsCard(shown, this.openShapes),
          h("p", {}, h("button", { type: "button", class: "soft", onclick: () => this.openShapes(shown.request) }, "Open under Shapes")),
          textCard(shown)]
        : [h("p", {}, message.missing), message.names.length > 0 && this.shapesFor(message)]);
  }

  /** Fields for the shapes that the message lacks. */
  shapesFor({ names, rule }) {
    const fields = names.map((name) => h("input", { class: "code", "aria-label": `Shape of ${name}`, placeholder: `${name}.shape` }));
    return h("form", { class: "sizes", onsubmit: (event) => {
      event.preventDefault();
      const named = (name) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? `${name}:` : "");
      this.openShapes({ shapes: fields.map((field, at) => named(names[at]) + field.value), rule });
    } }, names.map((name, at) => h("label", {}, name, fields[at])), h("button", { class: "soft" }, "Explain"));
  }
}
