// The picture cell by cell: pointing at a cell of the result, or moving to it with the arrow keys, lights up the values
// that it shows. Cells of the result carry their index (data-z) and that of the value (data-x), operands' cells the latter.

import { h, drawn } from "./dom.js";

export function cellPicture(markup, cursor = null) {
  const picture = h("div", { class: "picture", tabIndex: 0, role: "group",
    "aria-label": "Cells of the result. Arrow keys move, page up and page down change the layer, escape ends." }, drawn(markup));
  const idle = "Point at a cell, or tab to the picture and use the arrow keys.";
  const line = h("p", { class: "said", "aria-live": "polite" }, idle);
  const operands = [...picture.querySelectorAll("[data-name]")].map((group) => ({
    name: group.dataset.name, fills: group.dataset.fills, cells: [...group.querySelectorAll("[data-x]")],
  }));
  const split = (text) => (text === "" ? [] : text.split(","));
  const written = (text) => (text === "" ? "[()]" : `[${split(text).join(", ")}]`);
  const indices = (operands[0]?.cells ?? []).flatMap((cell) => (cell.dataset.z === undefined ? [] : [split(cell.dataset.z)]));
  const rank = indices[0]?.length ?? 0;
  const along = Array.from({ length: rank }, (_, axis) => [...new Set(indices.map((at) => at[axis]))]);
  let current = null;
  const clear = () => picture.querySelectorAll(".sc-lit").forEach((cell) => cell.classList.remove("sc-lit"));
  const result = (z, isOwn = true) => {
    if (isOwn) cursor?.set(split(z).map(Number), "picture");
    clear();
    const parts = [];
    for (const { name, cells } of operands) {
      const own = cells.find((cell) => cell.dataset.z === z);
      if (!own) continue;
      for (const cell of cells) {
        if (cell === own || (cell.dataset.z === undefined && cell.dataset.x === own.dataset.x)) cell.classList.add("sc-lit");
      }
      parts.push(name + written(own.dataset.x));
    }
    line.textContent = `result${written(z)} = ${parts.join(", ")}`;
  };
  const rest = () => { current = null; clear(); line.textContent = idle; };
  const move = (axis, step) => {
    if (!indices.length) return;
    if (!current) current = indices[0].slice();
    else if (axis >= 0) {
      const next = along[axis].indexOf(current[axis]) + step;
      current[axis] = along[axis][Math.max(0, Math.min(along[axis].length - 1, next))];
    }
    result(current.join(","));
  };
  cursor?.listen((from) => {
    if (from === "picture") return;
    current = cursor.index.map(String);
    result(current.join(","), false);
  });
  picture.addEventListener("mouseover", (event) => {
    const cell = event.target.closest("[data-x]");
    if (!cell) return;
    if (cell.dataset.z !== undefined) {
      current = split(cell.dataset.z);
      result(cell.dataset.z);
      return;
    }
    clear();
    const { name, fills, cells } = operands.find((own) => own.cells.includes(cell));
    cells.filter((own) => own.dataset.x === cell.dataset.x).forEach((own) => own.classList.add("sc-lit"));
    line.textContent = `${name}${written(cell.dataset.x)} is shown in ${fills === "1" ? "1 cell" : `${fills || "very many"} cells`} of the result`;
  });
  picture.addEventListener("mouseleave", rest);
  picture.addEventListener("focus", () => { if (picture.matches(":focus-visible")) move(-1, 0); });
  picture.addEventListener("blur", rest);
  picture.addEventListener("keydown", (event) => {
    const far = 1e6;
    const moves = { ArrowLeft: [rank - 1, -1], ArrowRight: [rank - 1, 1], ArrowUp: [rank - 2, -1], ArrowDown: [rank - 2, 1],
      PageUp: [rank - 3, -1], PageDown: [rank - 3, 1], Home: [rank - 1, -far], End: [rank - 1, far] };
    if (event.key === "Escape") rest();
    else if (moves[event.key]) move(...moves[event.key]);
    else return;
    event.preventDefault();
  });
  return [picture, line];
}
