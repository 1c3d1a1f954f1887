// The table of axes: the picture, and at the same time the text alternative. It shows the two steps, align and stretch,
// one after another, and which elements of the operands feed an element of the result.

import { h, fill, hueOf } from "./dom.js";

/** More axes than that are not laid out: a page with a million cells stands still. */
const MOST_AXES = 64;
const STEPS = ["as written", "align", "stretch"];

/** The place in an operand's own shape of what stands in each column; null where it has no axis. */
function ownAxes(row, operand) {
  const sources = operand?.sources;
  if (sources) return sources.map((source) => source.axis ?? null);
  let next = 0;
  return row.cells.map(([, mark]) => (mark === "added" ? null : next++));
}

/** An element of the result that sliders, slices and the picture share; null where sizes are not known or there are none. */
export function cursorOf({ explanation }) {
  const operands = explanation.operands ?? [];
  const shape = explanation.result?.shape;
  const isKnown = Array.isArray(shape) && shape.every((size) => typeof size === "number" && size > 0);
  if (!isKnown || !shape.length || shape.length > MOST_AXES || !operands.length || !operands.every((operand) => operand.sources)) return null;
  const listeners = [];
  return {
    index: shape.map((size) => Math.min(size - 1, Math.floor(size / 2))),
    listen(then) { listeners.push(then); },
    set(index, from) {
      this.index = index.map((own, axis) => Math.max(0, Math.min(shape[axis] - 1, own)));
      for (const then of listeners) then(from);
    },
  };
}

/** The index of an operand's element that stands at an index of the result. */
export function indexIn(operand, index) {
  const own = [];
  operand.sources.forEach((source, axis) => {
    if (source.axis !== undefined) own[source.axis] = source.stretched ? 0 : index[axis];
  });
  return own;
}

/** `[1, 0]`; of a scalar `[()]`. */
export const indexText = (index) => `[${index.join(", ") || "()"}]`;

/**
 * @param shown an answer of `explain`: `table`, `explanation`
 * @param options `step`: what is shown first; `cursor`: the element of the result, where one can be chosen
 */
export function axesTable(shown, { step = 2, cursor = null, caption = "" } = {}) {
  const { table, explanation } = shown;
  if (!table) return h("p", { class: "hint" }, "The rank of an operand is not known, so its axes cannot be laid out.");
  const rank = table.axes.length;
  if (rank > MOST_AXES) return h("p", { class: "hint" }, `${rank.toLocaleString("en-US")} axes are too many for a table; the text below has them.`);
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
  if (cursor) probing(grid, whole, table, operands, result, cursor);
  return whole;
}

const dimText = (dim) => (dim === null ? "?" : typeof dim === "object" ? (dim.join ? `bcast(${dim.join.join(", ")})` : `${dim.lo ?? ""}..${dim.hi ?? ""}`) : String(dim));
export const shapeText = (shape) => (shape === null ? "(...)" : `(${shape.map(dimText).join(", ")}${shape.length === 1 ? "," : ""})`);

/** A row of sliders: an element of the result, and the element of every operand that it shows. */
function probing(grid, whole, table, operands, result, cursor) {
  const line = h("p", { class: "feeds", "aria-live": "polite" });
  const cells = result.map((size, axis) => {
    const said = h("output");
    const input = h("input", { type: "range", min: "0", max: String(size - 1), disabled: size === 1,
      "aria-label": `Index along ${/^\d+$/.test(table.axes[axis]) ? "axis " : ""}${table.axes[axis]}`,
      oninput: (event) => cursor.set(cursor.index.with(axis, Number(event.target.value)), "sliders") });
    return { input, said };
  });
  const show = () => {
    cells.forEach(({ input, said }, axis) => {
      input.value = String(cursor.index[axis]);
      said.textContent = input.value;
    });
    const parts = operands.map((operand, number) =>
      h("span", {}, number ? ", " : "", h("b", { class: hueOf(number) }, operand.name), indexText(indexIn(operand, cursor.index))));
    fill(line, h("b", {}, "result"), `${indexText(cursor.index)} = `, parts);
  };
  grid.append(h("tfoot", {}, h("tr", { class: "probe" }, h("th", { scope: "row" }, "index"), cells.map(({ input, said }) => h("td", {}, input, said)), h("td", {}))));
  cursor.listen(show);
  show();
  whole.append(line);
}
