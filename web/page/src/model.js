// The view of models. They are read in a worker, which is stopped where it takes too long, so that no file can hang the tab.

import { h, fill, byId, download, bytesOf, counted } from "./dom.js";
import { axesTable, cursorOf, shapeText } from "./axes.js";
import { pictureCard } from "./slices.js";
import { verdict, badge, codes, textCard } from "./parts.js";
import { remember } from "./link.js";

/** Longer than that nobody waits; the worker is ended. */
const PATIENCE_MS = 60_000;
/** The largest file that is read: it has to fit in the memory of a page, twice. */
const LARGEST = 1.4e9;
const ROW_PX = 38;
const COLUMNS = [
  ["node", "Node", "20%"], ["op", "Operator", "11%"], ["operands", "Operands", "27%"], ["result", "Result", "16%"], ["repeats", "Repeats", "11%"],
  ["growth", "Growth", "8%"], ["bytes", "Memory", "8%"], ["found", "Found", "9%"],
];

export class Models {
  constructor(start) {
    this.start = start;
    this.waiting = new Map();
    this.next = 0;
    const drop = byId("drop");
    byId("model-file").addEventListener("change", (event) => this.open([...event.target.files]));
    for (const kind of ["dragover", "dragenter"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("is-over"); });
    for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("is-over"));
    drop.addEventListener("drop", (event) => { event.preventDefault(); this.open([...event.dataTransfer.files]); });
    for (const button of document.querySelectorAll("[data-model]")) button.addEventListener("click", () => this.example(button.dataset.model));
    byId("model-stop").addEventListener("click", () => this.stop("Stopped."));
  }

  fromLink() {
    remember("model", []);
  }

  /** An answer of the worker; it is ended where none comes. */
  ask(request, files) {
    if (!this.worker) {
      this.worker = this.start();
      this.worker.onmessage = ({ data }) => {
        const asked = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        this.busy();
        asked?.done(data);
      };
      this.worker.onerror = () => this.stop("The worker that reads models failed.");
    }
    const id = this.next++;
    const limit = setTimeout(() => this.stop(`No answer within ${PATIENCE_MS / 1000} seconds: stopped.`), PATIENCE_MS);
    return new Promise((resolve, reject) => {
      const ended = (then) => (value) => { clearTimeout(limit); then(value); };
      this.waiting.set(id, { done: ended(resolve), failed: ended(reject) });
      this.busy();
      this.worker.postMessage({ id, request, files });
    });
  }

  busy() {
    byId("model-stop").hidden = this.waiting.size === 0;
  }

  stop(why) {
    this.worker?.terminate();
    this.worker = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    this.busy();
    waiting.forEach(({ failed }) => failed(new Error(why)));
  }

  note(text) {
    byId("model-note").textContent = text;
  }

  /** One of the models of the site. */
  async example(name) {
    try {
      const answer = await fetch(`models/${name}`);
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      await this.open([new File([await answer.arrayBuffer()], name)]);
    } catch (error) {
      this.note(`${name}: ${error.message}`);
    }
  }

  async open(files) {
    if (!files.length) return;
    const model = files.find((file) => file.name.toLowerCase().endsWith(".onnx")) ?? files[0];
    this.name = model.name;
    this.file = model;
    this.beside = files.filter((file) => file !== model);
    this.sizes = {};
    fill(byId("model-out"));
    if (!model.size) {
      this.note(`${model.name}: the file is empty`);
      return;
    }
    if (model.size > LARGEST) {
      this.note(`${model.name}: ${bytesOf(model.size)} are more than a page can hold; the command takes it: simulcast onnx check ${model.name}`);
      return;
    }
    await this.check(true);
  }

  async check(fresh) {
    this.note(`Reading ${this.name} …`);
    try {
      const began = performance.now();
      const { answer } = await this.ask({ do: "model", sizes: this.sizes }, fresh ? { model: this.file, beside: this.beside } : undefined);
      if (answer.usage) {
        this.note(`${this.name}: ${answer.usage}`);
        if (fresh) fill(byId("model-out"));
        return;
      }
      this.note(`${this.name}: ${bytesOf(this.file.size)}, checked in ${Math.round(performance.now() - began)} ms`);
      this.report = answer.report;
      this.show();
    } catch (error) {
      this.note(`${this.name}: ${error.message}`);
      fill(byId("model-out"));
    }
  }

  rows() {
    const { broadcasts, problems, findings } = this.report;
    const rows = broadcasts.map((own, index) => {
      const operands = own.operands ?? [];
      const shape = own.error ? "" : shapeText(own.result.shape);
      const found = own.error ? [own.error.code] : (own.findings ?? []).map((finding) => finding.code);
      return { index, node: own.node, op: own.op, isError: Boolean(own.error), found,
        operands: operands.map((operand) => `${operand.name} ${shapeText(operand.shape)}`).join(", "),
        result: shape, repeats: own.repeats.map(({ operand, axes }) => `${operands[operand]?.name ?? operand} ${axes.join(" ")}`).join(", "),
        growth: own.cost?.growth ?? null, bytes: own.result_bytes ?? null };
    });
    for (const problem of problems) rows.push({ index: null, node: problem.node, op: problem.op, isError: true, found: ["error"], operands: problem.message, result: "", repeats: "", growth: null, bytes: null });
    for (const finding of findings) rows.push({ index: null, node: finding.at, op: "", isError: false, found: [finding.code], operands: finding.message, result: "", repeats: "", growth: null, bytes: null });
    return rows;
  }

  show() {
    const { model, broadcasts, errors, symbols, constraints, unknown_operators: unknown } = this.report;
    const all = this.rows();
    const flagged = all.reduce((sum, row) => sum + (row.isError ? 0 : row.found.length), 0);
    const tile = (value, label, mood = "") => h("div", { class: `tile ${mood}` }, h("b", {}, value), h("span", {}, label));
    this.table = new Grid(all, (row) => this.choose(row));
    const names = symbols ?? [];
    this.detail = h("div", { id: "model-detail", "aria-live": "polite" });
    fill(byId("model-out"),
      h("div", { class: "tiles" }, tile(counted(model.nodes), "nodes"), tile(counted(broadcasts.length), "broadcasts"),
        tile(counted(broadcasts.filter((own) => own.repeats.length).length), "repeat an operand"),
        tile(counted(errors), "errors", errors ? "is-bad" : ""), tile(counted(flagged), "findings", flagged ? "is-warn" : ""), tile(String(model.opset), "opset")),
      h("section", { class: "card" }, h("h2", {}, "Broadcasts"), this.table.element),
      this.detail,
      h("div", { class: "cards" },
        h("section", { class: "card" }, h("h2", {}, "Take it along"), h("div", { class: "tools" },
          h("button", { type: "button", class: "soft", id: "get-annotated", onclick: () => this.annotated() }, "Model with its shapes (.onnx)"),
          h("button", { type: "button", class: "soft", id: "get-report", onclick: () => this.page() }, "Report (.html)"),
          h("button", { type: "button", class: "soft", id: "get-json", onclick: () => download(`${this.stem()}.json`, "application/json", JSON.stringify(this.report)) }, "Report (.json)")),
          h("p", { class: "hint" }, "The annotated model has every inferred shape written into it; everything else is kept byte for byte.")),
        (names.length > 0 || Object.keys(this.sizes).length > 0) && this.symbolsCard(names),
        constraints.length > 0 && h("section", { class: "card" }, h("h2", {}, "It works where"),
          h("ul", { class: "facts" }, constraints.slice(0, 100).map((need) => h("li", {}, h("code", {}, need.text), ` ${need.nodes[0] ?? ""}${need.nodes.length > 1 ? ` and ${need.nodes.length - 1} more` : ""}`)))),
        Object.keys(unknown).length > 0 && h("section", { class: "card" }, h("h2", {}, "Operators without a rule here"),
          h("ul", { class: "facts" }, Object.entries(unknown).map(([op, count]) => h("li", {}, `${op}: ${count}`))))));
    this.table.draw();
  }

  symbolsCard(names) {
    const wanted = [...new Set([...names, ...Object.keys(this.sizes)])];
    const fields = wanted.map((name) => {
      const input = h("input", { type: "text", inputMode: "numeric", "aria-label": `Size of ${name}`, placeholder: "any" });
      input.value = this.sizes[name] ?? "";
      input.dataset.symbol = name;
      return h("label", {}, name, input);
    });
    return h("section", { class: "card" }, h("h2", {}, "Symbols"), h("form", { onsubmit: (event) => {
      event.preventDefault();
      this.sizes = {};
      for (const input of event.target.querySelectorAll("input")) {
        if (/^\d{1,9}$/.test(input.value.trim())) this.sizes[input.dataset.symbol] = Number(input.value);
      }
      this.check(false);
    } }, h("div", { class: "sizes" }, fields, h("button", { class: "soft", id: "bind" }, "Bind"))));
  }

  async choose(row) {
    if (row.index === null) {
      fill(this.detail, h("div", { class: "cards" }, h("section", { class: "card wide" }, h("h2", {}, row.node), h("p", {}, ...row.found.map((code) => (codes.has(code) ? badge(code) : code)), " ", row.operands))));
    } else {
      const { answer } = await this.ask({ do: "broadcast", index: row.index }).catch((error) => ({ answer: { usage: error.message } }));
      if (answer.usage) return this.note(answer.usage);
      const own = this.report.broadcasts[row.index];
      const from = (own.producers ?? []).map((text, at) => text && h("li", {}, h("code", {}, own.operands?.[at]?.name ?? String(at)), ` is ${text}`));
      const cursor = cursorOf(answer);
      fill(this.detail, h("div", { class: "cards" }, h("section", { class: "card wide" }, h("h2", {}, `${row.node} (${row.op})`), verdict(answer),
        h("ul", { class: "facts" }, from), axesTable(answer, { cursor }), pictureCard(answer, cursor),
        (own.findings ?? []).map((finding) => h("div", { class: "finding" }, h("p", {}, badge(finding.code), " ", finding.message))),
        (own.error?.fixes ?? []).map((fix) => h("p", {}, h("code", {}, fix.expression))), textCard(answer))));
    }
    const reduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.detail.scrollIntoView({ block: "nearest", behavior: reduced ? "auto" : "smooth" });
  }

  stem() {
    return this.name.replace(/\.onnx$/i, "");
  }

  async annotated() {
    const { answer, file } = await this.ask({ do: "annotate", sizes: this.sizes }).catch((error) => ({ answer: { usage: error.message } }));
    if (answer.usage) return this.note(answer.usage);
    download(`${this.stem()}.shapes.onnx`, "application/octet-stream", file);
    const { added, kept, replaced } = answer.annotated;
    this.note(`${added} shapes added, ${replaced.length} replaced, ${kept} kept as they were`);
  }

  async page() {
    const { answer, file } = await this.ask({ do: "report", title: this.name }).catch((error) => ({ answer: { usage: error.message } }));
    if (answer.usage) return this.note(answer.usage);
    download(`${this.stem()}.html`, "text/html", file);
  }
}

/** A table of any length: only the rows in sight are elements. */
class Grid {
  constructor(rows, choose) {
    this.all = rows;
    this.rows = rows;
    this.choose = choose;
    this.sorted = { column: null, down: false };
    this.filter = h("input", { type: "search", id: "model-filter", placeholder: "Filter by node, operator, shape or code", "aria-label": "Filter", oninput: () => this.filtered() });
    const kinds = [["all", "all"], ["error", "errors"], ["found", "findings"], ["repeats", "repeats"]];
    this.kind = "all";
    this.buttons = kinds.map(([kind, name]) => h("button", { type: "button", class: "soft", "aria-pressed": String(kind === "all"), "data-kind": kind, onclick: () => { this.kind = kind; this.filtered(); } }, name));
    this.count = h("span", { class: "hint", role: "status" });
    this.heads = COLUMNS.map(([key, name, width]) => h("th", { scope: "col", vars: { width } }, h("button", { type: "button", onclick: () => this.sort(key) }, name)));
    this.body = h("tbody");
    this.table = h("table", { "aria-rowcount": String(rows.length + 1) }, h("caption", { class: "quiet" }, "Broadcasts of the model"), h("thead", {}, h("tr", { "aria-rowindex": "1" }, this.heads)), this.body);
    this.pane = h("div", { class: "grid", vars: { "--rows": String(Math.max(2, Math.min(rows.length, 20))) }, tabIndex: 0, role: "region", "aria-label": "Broadcasts of the model", onscroll: () => this.draw() }, this.table);
    this.element = h("div", {}, h("div", { class: "filters" }, this.filter, this.buttons, this.count), this.pane);
  }

  filtered() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (row) => {
      if (this.kind === "error" && !row.isError) return false;
      if (this.kind === "found" && (row.isError || !row.found.length)) return false;
      if (this.kind === "repeats" && !row.repeats) return false;
      if (!words.length) return true;
      row.text ??= `${row.node} ${row.op} ${row.operands} ${row.result} ${row.found.join(" ")}`.toLowerCase();
      return words.every((word) => row.text.includes(word));
    };
    this.rows = this.all.filter(fits);
    this.buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.kind === this.kind)));
    this.order();
    this.pane.scrollTop = 0;
    this.draw();
  }

  sort(column) {
    this.sorted = { column, down: this.sorted.column === column ? !this.sorted.down : ["growth", "bytes", "found"].includes(column) };
    this.heads.forEach((head, at) => {
      if (COLUMNS[at][0] === column) head.setAttribute("aria-sort", this.sorted.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.order();
    this.draw();
  }

  order() {
    const { column, down } = this.sorted;
    if (!column) return;
    const value = (row) => (column === "found" ? row.found.length + (row.isError ? 1000 : 0) : row[column]);
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    this.rows = this.rows.slice().sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const order = typeof x === "number" ? x - y : compare(x, y);
      return down ? -order : order;
    });
  }

  draw() {
    const first = Math.max(0, Math.floor(this.pane.scrollTop / ROW_PX) - 8);
    const shown = this.rows.slice(first, first + Math.ceil((this.pane.clientHeight || 600) / ROW_PX) + 18);
    this.count.textContent = `${counted(this.rows.length)} of ${counted(this.all.length)}`;
    const gap = (rows) => h("tr", { "aria-hidden": "true" }, h("td", { class: "gap", colSpan: COLUMNS.length, vars: { height: `${rows * ROW_PX}px` } }));
    const chosen = this.chosen;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
    fill(this.body, first > 0 && gap(first), shown.map((row, at) => {
      const number = first + at;
      const name = h("button", { type: "button", "data-row": String(number), title: row.node, onclick: () => { this.chosen = row; this.draw(); this.choose(row); },
        onkeydown: (event) => this.key(event, number) }, row.node || "(no name)");
      return h("tr", { "aria-rowindex": String(number + 2), class: row === chosen ? "is-chosen" : null },
        h("td", {}, name), h("td", {}, row.op), h("td", { title: row.operands }, row.operands), h("td", {}, row.result), h("td", { title: row.repeats }, row.repeats),
        h("td", {}, row.growth === null ? "" : `${row.growth.toFixed(1)}×`), h("td", {}, row.bytes === null ? "" : bytesOf(row.bytes)),
        h("td", { class: row.isError ? "bad" : "" }, row.found.join(" ")));
    }), first + shown.length < this.rows.length && gap(this.rows.length - first - shown.length));
    if (focused !== null) this.body.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }

  key(event, number) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(this.rows.length - 1, number + step));
    if (next * ROW_PX < this.pane.scrollTop) this.pane.scrollTop = next * ROW_PX;
    if ((next + 2) * ROW_PX > this.pane.scrollTop + this.pane.clientHeight) this.pane.scrollTop = (next + 2) * ROW_PX - this.pane.clientHeight;
    this.draw();
    this.body.querySelector(`[data-row="${next}"]`)?.focus({ preventScroll: true });
  }
}
