// The table of axes: the picture, and at the same time the text alternative. It shows the two steps, align and stretch,
// one after another, and which elements of the operands feed an element of the result.

import { h, fill, hueOf } from "./dom.js";

const STEPS = ["as written", "align", "stretch"];

/** The place in an operand's own shape of what stands in each column; null where it has no axis. */
function ownAxes(row, operand) {
  const sources = operand?.sources;
  if (sources) return sources.map((source) => source.axis ?? null);
  let next = 0;
  return row.cells.map(([, mark]) => (mark === "added" ? null : next++));
}

/**
 * @param shown an answer of `explain`: `table`, `explanation`
 * @param options `step`: what is shown first; `probe`: whether indices can be chosen
 */
export function axesTable(shown, { step = 2, probe = true, caption = "" } = {}) {
  const { table, explanation } = shown;
  if (!table) return h("p", { class: "hint" }, "The rank of an operand is not known, so its axes cannot be laid out.");
  const rank = table.axes.length;
  const operands = explanation.operands ?? [];
  const result = explanation.result?.shape ?? null;
  const whole = h("div", { class: "axes-view" });
  const grid = h("table", { class: "axes" });
  grid.dataset.step = String(step);
  grid.append(
    h("caption", { class: "quiet" }, caption || "Which axis of each operand meets which axis of the result"),
    h("thead", {}, h("tr", {},
      h("td", { class: "corner" }),
      table.axes.map((name, axis) => h("th", { scope: "col" }, /^\d+$/.test(name) ? `axis ${name}` : name, h("small", {}, `(${axis - rank})`))),
      h("td", {}))),
  );
  const body = h("tbody");
  for (const row of table.rows) {
    const isTarget = row.operand === null;
    const operand = isTarget ? null : operands[row.operand];
    const own = ownAxes(row, operand);
    const cells = row.cells.map(([text, mark], column) => {
      const to = result?.[column];
      const stride = operand?.strides?.[column];
      const repeated = mark === "stretched" || mark === "added";
      const label = mark === "added" ? "1" : text;
      const spoken = { added: "no axis, repeated", stretched: "1, repeated", clash: `${text}, clashes`, kept: text }[mark];
      const shift = own[column] === null ? 0 : own[column] - column;
      return h("td", { class: `is-${mark}${repeated ? " is-repeated" : ""}`, vars: shift ? { "--shift": `calc(var(--cell) * ${shift})` } : {} },
        h("span", { class: "chip", "aria-hidden": "true" },
          h("span", {}, mark === "clash" ? `≠ ${label}` : label,
            repeated && to !== undefined && to !== null && h("span", { class: "to" }, ` → ${typeof to === "object" ? dimText(to) : to}`)),
          stride !== undefined && h("small", { class: "stride" }, `stride ${stride}`)),
        h("span", { class: "quiet" }, spoken));
    });
    body.append(h("tr", { class: isTarget ? "target" : hueOf(row.operand) },
      h("th", { scope: "row", title: row.name }, row.name), cells, h("td", { class: "own" }, row.shape)));
  }
  if (table.omitted) body.append(h("tr", {}, h("td", { class: "own", colSpan: rank + 2 }, `and ${table.omitted} more operands`)));
  if (table.result) {
    body.append(h("tr", { class: "result" }, h("th", { scope: "row" }, "result"),
      table.result.cells.map(([text]) => h("td", {}, h("span", { class: "chip" }, text))),
      h("td", { class: "own" }, table.result.shape)));
  }
  grid.append(body);

  const buttons = STEPS.map((name, number) => h("button", { type: "button", "aria-pressed": String(number === step), onclick: () => { stop(); show(number); } }, `${number + 1}. ${name}`));
  const show = (number) => {
    grid.dataset.step = String(number);
    buttons.forEach((button, own) => button.setAttribute("aria-pressed", String(own === number)));
  };
  let playing = 0;
  const stop = () => { clearTimeout(playing); playing = 0; };
  const play = (number = 0) => {
    stop();
    show(number);
    if (number < 2) playing = setTimeout(() => play(number + 1), 1100);
  };
  const steps = h("div", { class: "steps", role: "group", "aria-label": "The two steps" }, buttons,
    h("button", { type: "button", class: "play", "aria-label": "Play the two steps", title: "Play the two steps", onclick: () => play() }, "▶"));
  whole.append(steps, h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Table of axes" }, grid));
  const known = result && result.every((size) => typeof size === "number") && operands.every((operand) => operand.sources);
  if (probe && known && rank > 0 && !result.includes(0)) probing(grid, whole, table, operands, result);
  return whole;
}

const dimText = (dim) => (dim === null ? "?" : typeof dim === "object" ? (dim.join ? `bcast(${dim.join.join(", ")})` : `${dim.lo ?? ""}..${dim.hi ?? ""}`) : String(dim));
export const shapeText = (shape) => (shape === null ? "(...)" : `(${shape.map(dimText).join(", ")}${shape.length === 1 ? "," : ""})`);

/** A row of sliders: an element of the result, and the element of every operand that it shows. */
function probing(grid, whole, table, operands, result) {
  const index = result.map((size) => Math.min(size - 1, Math.floor(size / 2)));
  const line = h("p", { class: "feeds", "aria-live": "polite" });
  const says = () => {
    const parts = operands.map((operand, number) => {
      const own = [];
      operand.sources.forEach((source, axis) => {
        if (source.axis !== undefined) own[source.axis] = source.stretched ? 0 : index[axis];
      });
      return h("span", {}, number ? ", " : "", h("b", { class: hueOf(number) }, operand.name), `[${own.join(", ") || "()"}]`);
    });
    fill(line, h("b", {}, "result"), `[${index.join(", ")}] = `, parts);
  };
  const cells = result.map((size, axis) => {
    const said = h("output", {}, String(index[axis]));
    const input = h("input", { type: "range", min: "0", max: String(size - 1), value: String(index[axis]), disabled: size === 1,
      "aria-label": `Index along ${/^\d+$/.test(table.axes[axis]) ? "axis " : ""}${table.axes[axis]}`,
      oninput: (event) => { index[axis] = Number(event.target.value); said.textContent = event.target.value; says(); } });
    return h("td", {}, input, said);
  });
  grid.append(h("tfoot", {}, h("tr", { class: "probe" }, h("th", { scope: "row" }, "index"), cells, h("td", {}))));
  says();
  whole.append(line);
}
