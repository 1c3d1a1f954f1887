// The view of expressions: a text and the shapes of its operands in, a tree of operations out.

import { h, fill, byId, hueOf, eachFrame, bytesOf } from "./dom.js";
import { axesTable, shapeText } from "./axes.js";
import { verdict, findingsCard, bar } from "./parts.js";
import { takeCard, addressOf, markdown } from "./take.js";
import { remember } from "./link.js";

const TYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"];
const EXAMPLES = [
  ["normalise", "(image - mean) / std", { image: ["32,224,224,3", "uint8"], mean: ["3", "float32"], std: ["3", "float32"] }],
  ["attention mask", "where(mask, scores, -inf)", { mask: ["4,1,1,128", "bool"], scores: ["4,12,128,128", "float32"] }],
  ["hoisted", "x + exp(sin(row)) * tanh(row)", { x: ["4000,4000", "float32"], row: ["4000", "float32"] }],
  ["layer norm", "(x - x.mean(axis=-1, keepdims=True)) * scale + shift", { x: ["8,128,768", "float32"], scale: ["768", "float32"], shift: ["768", "float32"] }],
  ["a clash", "2 * (image - mean)", { image: ["32,64,56,56", "float32"], mean: ["64", "float32"] }],
];

export class Expressions {
  constructor(engine) {
    this.engine = engine;
    this.text = EXAMPLES[0][1];
    this.operands = new Map(Object.entries(EXAMPLES[0][2]));
    this.chosen = null;
    this.update = eachFrame(() => this.explain());
    byId("expression").addEventListener("input", (event) => { this.text = event.target.value; this.chosen = null; this.update(); });
    fill(byId("expression-examples"), EXAMPLES.map(([name, text, operands]) =>
      h("button", { type: "button", onclick: () => this.set(text, new Map(Object.entries(operands))) }, name)));
  }

  set(text, operands) {
    this.text = text;
    this.operands = operands;
    this.chosen = null;
    byId("expression").value = text;
    this.rows = null;
    this.explain();
  }

  fromLink(fields) {
    const operands = new Map();
    const types = fields.getAll("type");
    fields.getAll("op").forEach((op, at) => {
      const [name, shape = ""] = op.split(/:(.*)/s);
      operands.set(name, [shape, TYPES.includes(types[at]) ? types[at] : "float32"]);
    });
    if (fields.has("text")) this.set(fields.get("text"), operands);
    else this.set(this.text, this.operands);
  }

  pairs() {
    const pairs = [["text", this.text]];
    for (const name of this.rows ?? this.operands.keys()) {
      const [shape, type] = this.operands.get(name) ?? ["", "float32"];
      pairs.push(["op", `${name}:${shape}`], ["type", type]);
    }
    return pairs;
  }

  request() {
    const given = [...this.operands].filter(([, [shape]]) => shape.trim());
    return { do: "expression", text: this.text, operands: given.map(([name, [shape]]) => `${name}:${shape}`), types: given.map(([, [, type]]) => type) };
  }

  /** A field for the shape and the type of each operand. */
  fields(wanted) {
    if (this.rows && wanted.join() === this.rows.join()) return;
    this.rows = wanted;
    fill(byId("expression-operands"), wanted.map((name, at) => {
      if (!this.operands.has(name)) this.operands.set(name, ["", "float32"]);
      const own = this.operands.get(name);
      const shape = h("input", { id: `shape-${at}`, spellcheck: "false", autocomplete: "off", placeholder: "32,64 or ()",
        oninput: (event) => { own[0] = event.target.value; this.update(); } });
      shape.value = own[0];
      const type = h("select", { "aria-label": `Type of ${name}`, onchange: (event) => { own[1] = event.target.value; this.explain(); } },
        TYPES.map((own) => h("option", { value: own }, own)));
      type.value = own[1];
      return h("div", { class: `expression-operand ${hueOf(at)}` }, h("label", { for: `shape-${at}` }, name), shape, type);
    }));
  }

  explain() {
    const { answer } = this.engine.call(this.request());
    if (answer.wanted) this.fields(answer.wanted);
    remember("expression", this.pairs());
    const out = byId("expression-out");
    if (answer.usage) return fill(out, h("section", { class: "card" }, h("p", { class: "hint" }, answer.usage)));
    const nodes = answer.nodes ?? [];
    const drawable = nodes.map((node, at) => [node, at]).filter(([node]) => node.broadcast);
    if (this.chosen === null || !nodes[this.chosen]?.broadcast) {
      this.chosen = (drawable.find(([node]) => node.broadcast.explanation.error) ?? drawable.at(-1))?.[1] ?? null;
    }
    this.detail = h("section", { class: "card", "aria-live": "polite" });
    fill(out,
      answer.error && this.errorCard(answer),
      nodes.length > 0 && h("div", { class: "split" },
        h("section", { class: "card" }, h("h2", {}, "Operations"), this.tree(nodes)),
        this.detail),
      h("div", { class: "cards thirds" }, answer.stages && this.costs(answer), nodes.length > 0 && this.tools(answer)));
    this.show(nodes);
  }

  errorCard({ error }) {
    const [start, end] = error.span;
    const apply = (text) => this.set(text, this.operands);
    return h("section", { class: "card expression-error" },
      h("p", { class: "source" }, this.text.slice(0, start), h("mark", {}, this.text.slice(start, end) || " "), this.text.slice(end)),
      h("p", {}, error.message),
      error.suggestions?.length > 0 && h("div", { class: "fixes" }, error.suggestions.map((text) =>
        h("button", { type: "button", class: "fix", onclick: () => apply(text) }, text))));
  }

  /** The whole first, and below each operation what it is computed of. */
  tree(nodes) {
    const branch = (at) => {
      const node = nodes[at];
      const shape = node.reached ? (node.shape ? shapeText(node.shape) : "any shape") : "?";
      const about = h("span", { class: `shape${node.reached ? "" : " bad"}` }, `${node.type ?? (node.reached ? "number" : "")} ${shape}`.trim());
      if (!node.children.length) return h("li", {}, h("div", { class: "leaf" }, h("span", {}, node.text), about));
      const grows = node.broadcast?.explanation.cost?.growth;
      const line = h("button", { type: "button", "aria-pressed": String(at === this.chosen), disabled: !node.broadcast, "data-node": String(at),
        onclick: () => { this.chosen = at; this.show(nodes); } },
        h("span", {}, node.text), about,
        grows > 1.5 && h("span", { class: "grows" }, `${grows.toFixed(1)} times its operands`));
      return h("li", {}, line, h("ul", {}, node.children.map(branch)));
    };
    return h("ul", { class: "tree" }, branch(nodes.length - 1));
  }

  show(nodes) {
    byId("expression-out").querySelectorAll("[data-node]").forEach((line) => line.setAttribute("aria-pressed", String(Number(line.dataset.node) === this.chosen)));
    const node = nodes[this.chosen];
    if (!node) return fill(this.detail, h("p", { class: "hint" }, "No two arrays meet in this expression."));
    fill(this.detail, h("h2", {}, h("code", {}, node.text)), verdict(node.broadcast), axesTable(node.broadcast), findingsCard(node.broadcast));
  }

  costs(answer) {
    const { stages, traffic, traffic_each: each, temporaries, temporaries_each: made } = answer;
    const most = BigInt(Math.max(traffic ?? 0, each, 1));
    return [
      h("section", { class: "card" }, h("h2", {}, stages.length === 1 ? "One pass over memory" : `${stages.length} passes over memory`),
        h("ol", { class: "stages" }, stages.map((stage) => h("li", {}, h("code", {}, stage.expression), ` ${stage.type} ${shapeText(stage.shape)}, ${bytesOf(stage.bytes)}`,
          stage.hoisted && h("span", { class: "badge plain" }, "hoisted: computed once, at its own shape"))))),
      h("section", { class: "card" }, h("h2", {}, "Memory"), h("div", { class: "bars" },
        traffic !== null && bar("moved as one program", traffic, most, "o0", bytesOf(traffic)),
        bar("moved one operation at a time", each, most, "o1", bytesOf(each))),
        h("p", { class: "hint" }, `The result takes ${bytesOf(answer.result.bytes)}; beside it ${bytesOf(temporaries)} for what is computed before, ${bytesOf(made)} one operation at a time.`))];
  }

  tools(answer) {
    const names = this.rows ?? [];
    return takeCard("expression", () => this.pairs(), {
      Markdown: () => markdown(this.written(answer), addressOf("expression", this.pairs())),
      Python: () => `import simulcast\n\n${this.given("#")}result = simulcast.evaluate(${JSON.stringify(this.text)}${names.map((name) => `, ${name}=${name}`).join("")})\n`,
      Rust: () => `${this.given("//")}let result = simulcast::eval(${JSON.stringify(this.text)}, (${names.map((name) => `("${name}", &${name}),`).join(" ")}))?;\n`,
    });
  }

  /** The operands with their types and shapes, as comments. */
  given(sign) {
    return (this.rows ?? []).map((name) => `${sign} ${name}: ${(this.operands.get(name) ?? ["", ""]).toReversed().join(" ")}\n`).join("");
  }

  /** Every operation with its type and shape, and the passes, as lines. */
  written({ nodes, stages, error }) {
    const rows = nodes.filter((node) => node.children.length || node.kind === "name")
      .map((node) => [node.text, `${node.type ?? ""} ${node.shape ? shapeText(node.shape) : ""}`.trim()]);
    const width = Math.max(...rows.map(([text]) => text.length));
    return [...rows.map(([text, about]) => `${text.padEnd(width)}  ${about}`), "", ...(error ? [error.message] : []),
      ...(stages ?? []).map((stage, at) => `pass ${at + 1}: ${stage.expression}  ${stage.type} ${shapeText(stage.shape)}${stage.hoisted ? ", hoisted" : ""}`)].join("\n");
  }
}
