// The view of shapes: operands and a rule in, everything that can be said about them out.

import { h, fill, byId, hueOf, eachFrame } from "./dom.js";
import { axesTable, cursorOf } from "./axes.js";
import { pictureCard } from "./slices.js";
import { verdict, fixesCard, findingsCard, costCard, constraintsCard, textCard } from "./parts.js";
import { takeCard, addressOf, markdown, python, rust, shell } from "./take.js";
import { remember } from "./link.js";

const EXAMPLES = [
  ["8,1,6,1 with 7,1,5", { shapes: ["8,1,6,1", "7,1,5"] }],
  ["a clash", { shapes: ["image:2,3,4", "mask:2,4"] }],
  ["the (B, B) loss", { shapes: ["pred:32,1", "target:32"] }],
  ["column and row", { shapes: ["3,1", "4"] }],
  ["symbols", { shapes: ["x:batch,1,d", "y:seq,d"] }],
  ["by name", { shapes: ["image:h=2,w=3", "weight:w=3,h=2"], rule: "named" }],
  ["a bias from axis 1", { shapes: ["image:2,3,4", "bias:3"], rule: "pdpd:1" }],
];

/** The most operands that a link may bring. */
const MOST = 64;

export class Shapes {
  constructor(engine, rules) {
    this.engine = engine;
    this.rules = rules;
    this.state = { shapes: ["8,1,6,1", "7,1,5"], rule: "numpy", sizes: {} };
    this.update = eachFrame(() => this.explain());
    fill(byId("rule"), rules.map((rule) => h("option", { value: rule.name }, rule.name)));
    byId("rule").addEventListener("change", (event) => this.chooseRule(event.target.value));
    byId("add-operand").addEventListener("click", () => {
      this.state.shapes.push("");
      this.inputs();
      byId("operands").lastElementChild.querySelector("input").focus();
    });
    byId("shapes-form").addEventListener("submit", (event) => event.preventDefault());
    fill(byId("examples"), EXAMPLES.map(([name, state]) => h("button", { type: "button", onclick: () => this.set(state) }, name)));
  }

  /** Shows a state: after an example, a fix, or from a link. */
  set({ shapes, rule = "numpy", sizes = {} }) {
    this.state = { shapes: shapes.slice(0, MOST), rule, sizes: { ...sizes } };
    this.inputs();
    this.explain();
  }

  fromLink(fields) {
    if (![...fields.keys()].length) return this.set(this.state);
    const sizes = {};
    for (const set of fields.getAll("set")) {
      const [name, size] = set.split(":");
      if (/^\d{1,9}$/.test(size ?? "")) sizes[name] = Number(size);
    }
    const shapes = fields.getAll("op");
    this.set({ shapes: shapes.length ? shapes : this.state.shapes, rule: fields.get("rule") || "numpy", sizes });
  }

  pairs() {
    const { shapes, rule, sizes } = this.state;
    return [...shapes.filter((shape) => shape.trim()).map((shape) => ["op", shape]), ...(rule === "numpy" ? [] : [["rule", rule]]),
      ...Object.entries(sizes).map(([name, size]) => ["set", `${name}:${size}`])];
  }

  get kind() {
    return this.rules.find((rule) => rule.name === this.state.rule.split(":")[0]) ?? this.rules.find((rule) => rule.name === "numpy");
  }

  /** The fields of operands and rule, from the state. */
  inputs() {
    const { shapes } = this.state;
    fill(byId("operands"), shapes.map((shape, at) => {
      const name = String.fromCharCode(65 + (at % 26)) + (at >= 26 ? Math.floor(at / 26) : "");
      const input = h("input", { id: `operand-${at}`, "aria-label": `Operand ${name}`, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
        placeholder: "2,3,4", oninput: (event) => { this.state.shapes[at] = event.target.value; this.update(); } });
      input.value = shape;
      return h("li", { class: hueOf(at) },
        h("div", { class: "operand-line" }, h("span", { class: "dot", "aria-hidden": "true" }), input,
          h("button", { type: "button", class: "ghost", "aria-label": `Remove operand ${name}`, title: "Remove", disabled: shapes.length < 2,
            onclick: () => { this.state.shapes.splice(at, 1); this.inputs(); this.explain(); } }, "×")),
        h("p", { class: "wrong", id: `wrong-${at}`, hidden: true }));
    }));
    this.ruleFields();
  }

  chooseRule(name) {
    const kind = this.rules.find((rule) => rule.name === name);
    const [shape, axes] = ["2,3,4", kind.axes === "broadcast_axes" ? "0" : kind.axes ? "2" : ""];
    this.state.rule = name + (kind.shape ? `:${shape}${axes && `/${axes}`}` : "");
    this.ruleFields();
    this.explain();
  }

  ruleFields() {
    const kind = this.kind;
    const [, given = ""] = this.state.rule.split(/:(.*)/s);
    byId("rule").value = kind.name;
    byId("rule-summary").textContent = kind.summary;
    const field = (id, label, value, hint, made) => {
      const input = h("input", { id, value, placeholder: hint, spellcheck: "false", autocomplete: "off",
        oninput: (event) => { this.state.rule = made(event.target.value.trim()); this.update(); } });
      input.value = value;
      return h("label", {}, label, input);
    };
    if (kind.axis) {
      fill(byId("rule-parameters"), field("rule-axis", "axis", given, "right", (text) => kind.name + (text && `:${text}`)));
    } else if (kind.shape && kind.axes) {
      const [shape, axes = ""] = given.split("/");
      const parts = { shape, axes };
      const made = () => `${kind.name}:${parts.shape}/${parts.axes}`;
      fill(byId("rule-parameters"),
        field("rule-shape", kind.shape, shape, "2,3,4", (text) => { parts.shape = text; return made(); }),
        field("rule-axes", kind.axes, axes, "0,2", (text) => { parts.axes = text; return made(); }));
    } else if (kind.shape) {
      fill(byId("rule-parameters"), field("rule-shape", kind.shape, given, "2,3,4", (text) => `${kind.name}:${text}`));
    } else {
      fill(byId("rule-parameters"));
    }
  }

  /** The request of the state, as the compiled code takes it. */
  request(more = {}) {
    const { shapes, rule, sizes } = this.state;
    return { do: "explain", shapes: shapes.filter((shape) => shape.trim()), rule, sizes, ...more };
  }

  explain() {
    remember("shapes", this.pairs());
    document.querySelectorAll("#operands .wrong").forEach((wrong) => { wrong.hidden = true; });
    let { answer } = this.engine.call(this.request());
    if (answer.usage && Object.keys(this.state.sizes).length) {
      // Symbols that are gone have no sizes.
      const bare = this.engine.call(this.request({ sizes: {} })).answer;
      if (!bare.usage) {
        const { symbols } = bare;
        const fits = ([name, size]) => symbols[name] && size >= symbols[name].lo && size <= (symbols[name].hi ?? Infinity);
        this.state.sizes = Object.fromEntries(Object.entries(this.state.sizes).filter(fits));
        remember("shapes", this.pairs());
        answer = this.engine.call(this.request()).answer;
      }
    }
    if (answer.usage) return this.refused(answer);
    this.shown = answer;
    fill(byId("shapes-status"), verdict(answer));
    const cursor = cursorOf(answer);
    fill(byId("shapes-out"), axesTable(answer, { cursor }));
    this.symbols(answer.symbols);
    const apply = (fix) => {
      const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.set({ shapes: fix.shapes, rule: fix.rule, sizes: this.state.sizes });
      byId("shapes-status").scrollIntoView({ block: "center", behavior: reduced ? "auto" : "smooth" });
    };
    fill(byId("shapes-cards"),
      pictureCard(answer, cursor),
      h("div", { class: "column" }, fixesCard(answer, apply), findingsCard(answer, apply)),
      h("div", { class: "column" }, constraintsCard(answer), costCard(answer), this.tools()),
      textCard(answer));
  }

  refused(answer) {
    const at = this.state.shapes.map((shape, own) => [shape, own]).filter(([shape]) => shape.trim())[answer.operand]?.[1];
    fill(byId("shapes-status"), h("div", { class: "verdict is-bad" }, h("span", { class: "word" }, "not a request"), h("span", { class: "why" }, answer.usage)));
    if (at !== undefined) {
      const wrong = byId(`wrong-${at}`);
      wrong.textContent = answer.usage;
      wrong.hidden = false;
    }
    fill(byId("shapes-out"));
    fill(byId("shapes-cards"));
  }

  /** A slider for each symbol, which binds it to a size. */
  symbols(symbols) {
    const place = byId("symbols");
    const names = Object.keys(symbols ?? {});
    place.hidden = names.length === 0;
    if (names.join() === this.listed && names.length) {
      for (const name of names) this.said(name);
      return;
    }
    this.listed = names.join();
    fill(place, h("h2", {}, "Symbols"), names.map((name, at) => {
      const { lo, hi } = symbols[name];
      const most = Math.min(hi ?? 64, 1024);
      const free = h("input", { type: "checkbox", id: `free-${at}`, "aria-label": `Give ${name} a size`,
        onchange: (event) => { if (event.target.checked) this.state.sizes[name] = Number(slider.value); else delete this.state.sizes[name]; this.explain(); } });
      const slider = h("input", { type: "range", id: `symbol-${at}`, min: String(lo), max: String(Math.max(most, lo)), "aria-label": `Size of ${name}`,
        oninput: (event) => { this.state.sizes[name] = Number(event.target.value); this.update(); } });
      slider.value = String(this.state.sizes[name] ?? Math.max(lo, Math.min(4, most)));
      return h("div", { class: "symbol" }, h("label", {}, free, " ", h("code", {}, name)), slider, h("output", { id: `size-${at}` }));
    }));
    for (const name of names) this.said(name);
  }

  said(name) {
    const at = this.listed.split(",").indexOf(name);
    const size = this.state.sizes[name];
    byId(`size-${at}`).textContent = size === undefined ? "any" : String(size);
    byId(`free-${at}`).checked = size !== undefined;
  }

  tools() {
    const address = () => addressOf("shapes", this.pairs());
    return takeCard("shapes", () => this.pairs(), {
      Markdown: () => markdown(this.shown.text, address()),
      SVG: () => this.engine.call(this.request({ svg: true })).answer.svg,
      Python: () => python(this.request()),
      Rust: () => rust(this.request()),
      Command: () => shell(this.request()),
    });
  }
}
