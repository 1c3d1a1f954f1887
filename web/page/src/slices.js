// Two axes of the result at a time, with what feeds them: for results that are too large to be drawn cell by cell. The
// other axes stand still at the index that the sliders choose.

import { h, fill, hueOf, counted } from "./dom.js";
import { indexIn, indexText } from "./axes.js";
import { cellPicture } from "./cells.js";

/** The most cells of a block, down and across; of a longer axis a window around the index is drawn. */
const DOWN = 8;
const ACROSS = 10;
/** The most operands that are drawn. */
const BLOCKS = 8;

/** What a block shows along one of the two axes: its axis of the result, how many cells it has, and the first in sight. */
function span(axis, size, most, at) {
  const first = Math.max(0, Math.min(size - most, at - Math.floor(most / 2)));
  return { axis, size, first, last: Math.min(size, first + most) };
}

/** A card with the picture of what is known of a broadcast: cell by cell where it is small, two axes at a time elsewhere. */
export function pictureCard(shown, cursor) {
  const picture = shown.picture ? ["Cell by cell", cellPicture(shown.picture, cursor)]
    : cursor && ["Two axes at a time", slicePicture(shown.explanation, cursor)];
  return picture && h("section", { class: "card cells-card" }, h("h2", {}, picture[0]), picture[1]);
}

function slicePicture({ operands, result }, cursor) {
  const { shape } = result;
  const [down, across] = [shape.length - 2, shape.length - 1];
  const drawn = operands.slice(0, BLOCKS);
  const line = h("p", { class: "said", "aria-live": "polite" });
  const idle = "Point at a cell, or tab to the picture and use the arrow keys; page up and page down change the layer.";
  const place = h("div", { class: "slices", tabIndex: 0, role: "group",
    "aria-label": "Two axes of the result and of its operands. Arrow keys move, page up and page down change the layer, escape ends." });
  let blocks = [];
  let shown = "";

  /** The size of an operand along an axis of the result: 1 where it repeats or has no axis. */
  const sizeOf = (operand, axis) => {
    if (axis < 0) return 1;
    if (!operand) return shape[axis];
    const source = operand.sources[axis];
    return source.axis === undefined || source.stretched ? 1 : shape[axis];
  };

  const block = (operand, number, index) => {
    const [rows, columns] = [[down, DOWN], [across, ACROSS]].map(([axis, most]) => {
      const size = sizeOf(operand, axis);
      return span(axis, size, Math.min(most, size), size === 1 ? 0 : index[axis]);
    });
    const cells = [];
    for (let row = rows.first; row < rows.last; row += 1) {
      for (let column = columns.first; column < columns.last; column += 1) {
        const cell = h("i");
        cell.dataset.at = `${row},${column}`;
        cells.push(cell);
      }
    }
    // In the order of the operand's own axes, `:` for the two that are drawn.
    const own = operand ? indexIn(operand, index) : index.slice();
    const axes = operand ? operand.sources.map((source) => source.axis) : index.map((_, axis) => axis);
    for (const axis of [down, across]) if (axis >= 0 && axes[axis] !== undefined && sizeOf(operand, axis) > 1) own[axes[axis]] = ":";
    const cut = [rows, columns].filter(({ first, last, size }) => last - first < size)
      .map(({ axis, first, last, size }) => `axis ${axis}: ${counted(first)}–${counted(last - 1)} of ${counted(size)}`);
    const grid = h("div", { class: "cells", vars: { "--across": String(columns.last - columns.first) } }, cells);
    return { operand, number, cells, element: h("figure", { class: `slice ${operand ? hueOf(number) : "whole"}`, "aria-hidden": "true" },
      h("figcaption", {}, h("b", {}, operand ? operand.name : "result"), indexText(own)), grid, cut.length > 0 && h("small", {}, cut.join(", "))) };
  };

  const draw = () => {
    // What stands still, and the windows: as long as they do, the blocks stay.
    const key = cursor.index.map((at, axis) => (axis < down || (axis === down && shape[axis] > DOWN) || (axis === across && shape[axis] > ACROSS) ? at : "")).join();
    if (key === shown) return;
    shown = key;
    blocks = [...drawn.map((operand, number) => block(operand, number, cursor.index)), block(null, -1, cursor.index)];
    fill(place, blocks.flatMap(({ element }, at) => [at === blocks.length - 1 && h("span", { class: "arrow", "aria-hidden": "true" }, "→"), element]),
      operands.length > drawn.length && h("small", {}, `and ${operands.length - drawn.length} more operands`));
  };

  const clear = () => blocks.forEach(({ cells }) => cells.forEach((cell) => cell.classList.remove("is-lit")));
  const at = (block) => {
    const part = (axis) => (sizeOf(block.operand, axis) === 1 ? 0 : cursor.index[axis]);
    return `${part(down)},${part(across)}`;
  };
  const light = () => {
    clear();
    for (const own of blocks) own.cells.find((cell) => cell.dataset.at === at(own))?.classList.add("is-lit");
    line.textContent = `result${indexText(cursor.index)} = ${operands.map((operand) => operand.name + indexText(indexIn(operand, cursor.index))).join(", ")}`;
  };
  const move = (axis, step) => {
    if (axis >= 0) cursor.set(cursor.index.with(axis, cursor.index[axis] + step), "slices");
    draw();
    light();
  };
  const rest = () => { clear(); line.textContent = idle; };

  place.addEventListener("mouseover", (event) => {
    const cell = event.target.closest("[data-at]");
    if (!cell) return;
    const own = blocks.find(({ cells }) => cells.includes(cell));
    const [row, column] = cell.dataset.at.split(",").map(Number);
    const index = cursor.index.slice();
    if (down >= 0) index[down] = row;
    index[across] = column;
    if (!own.operand) {
      cursor.set(index, "slices");
      light();
      return;
    }
    clear();
    cell.classList.add("is-lit");
    const [isRow, isColumn] = [down, across].map((axis) => sizeOf(own.operand, axis) > 1);
    blocks.at(-1).cells.forEach((other) => {
      const [r, c] = other.dataset.at.split(",").map(Number);
      if ((!isRow || r === row) && (!isColumn || c === column)) other.classList.add("is-lit");
    });
    const times = shape.reduce((product, size, axis) => (sizeOf(own.operand, axis) === 1 ? product * BigInt(size) : product), 1n);
    line.textContent = `${own.operand.name}${indexText(indexIn(own.operand, index))} is shown in ${times === 1n ? "1 cell" : `${counted(times)} cells`} of the result`;
  });
  place.addEventListener("mouseleave", rest);
  place.addEventListener("focus", () => { if (place.matches(":focus-visible")) light(); });
  place.addEventListener("blur", rest);
  place.addEventListener("keydown", (event) => {
    const far = 1e9;
    const moves = { ArrowLeft: [across, -1], ArrowRight: [across, 1], ArrowUp: [down, -1], ArrowDown: [down, 1],
      PageUp: [down - 1, -1], PageDown: [down - 1, 1], Home: [across, -far], End: [across, far] };
    if (event.key === "Escape") rest();
    else if (moves[event.key]) move(...moves[event.key]);
    else return;
    event.preventDefault();
  });
  cursor.listen((from) => { if (from !== "slices") { draw(); light(); } });
  draw();
  rest();
  return [place, line];
}
