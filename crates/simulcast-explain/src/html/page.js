"use strict";
// Lights up what a cell of the result shows, for the mouse and for the keyboard.
// Cells of Z carry their index (data-z) and the index of the value they show (data-x);
// cells of X and Y carry the latter. All text goes through textContent.
document.querySelectorAll(".picture").forEach((picture) => {
  const line = picture.parentElement.querySelector(".line");
  const idle = line.textContent;
  const operands = [...picture.querySelectorAll("[data-name]")].map((group) => ({
    name: group.dataset.name,
    fills: group.dataset.fills,
    cells: [...group.querySelectorAll("[data-x]")],
  }));
  // The drawn indices of the result, along each axis: what arrow keys step through.
  const indices = operands[0].cells.flatMap((cell) =>
    cell.dataset.z === undefined ? [] : [split(cell.dataset.z)],
  );
  const rank = indices.length ? indices[0].length : 0;
  const drawn = Array.from({ length: rank }, (_, axis) => [...new Set(indices.map((at) => at[axis]))]);
  let current = null;

  function split(text) {
    return text === "" ? [] : text.split(",");
  }
  function written(text) {
    return text === "" ? "[()]" : "[" + split(text).join(", ") + "]";
  }
  function clear() {
    picture.querySelectorAll(".sc-lit").forEach((cell) => cell.classList.remove("sc-lit"));
  }
  function showResult(z) {
    clear();
    const parts = [];
    for (const { name, cells } of operands) {
      const own = cells.find((cell) => cell.dataset.z === z);
      if (!own) continue;
      for (const cell of cells) {
        const source = cell.dataset.z === undefined && cell.dataset.x === own.dataset.x;
        if (cell === own || source) cell.classList.add("sc-lit");
      }
      parts.push(name + written(own.dataset.x));
    }
    line.textContent = "result" + written(z) + " = " + parts.join(", ");
  }
  function showValue({ name, fills, cells }, x) {
    clear();
    cells.filter((cell) => cell.dataset.x === x).forEach((cell) => cell.classList.add("sc-lit"));
    const many = fills === "1" ? "1 cell" : (fills || "very many") + " cells";
    line.textContent = name + written(x) + " is shown in " + many + " of the result";
  }
  function rest() {
    current = null;
    clear();
    line.textContent = idle;
  }
  function move(axis, step) {
    if (!indices.length) return;
    if (!current) {
      current = indices[0].slice();
    } else if (axis >= 0) {
      const along = drawn[axis];
      const next = along.indexOf(current[axis]) + step;
      current[axis] = along[Math.max(0, Math.min(along.length - 1, next))];
    }
    showResult(current.join(","));
  }

  picture.addEventListener("mouseover", (event) => {
    const cell = event.target.closest("[data-x]");
    if (!cell) return;
    if (cell.dataset.z !== undefined) {
      current = split(cell.dataset.z);
      showResult(cell.dataset.z);
    } else {
      showValue(operands.find(({ cells }) => cells.includes(cell)), cell.dataset.x);
    }
  });
  picture.addEventListener("mouseleave", rest);
  picture.addEventListener("focus", () => {
    if (picture.matches(":focus-visible")) move(-1, 0);
  });
  picture.addEventListener("blur", rest);
  picture.addEventListener("keydown", (event) => {
    const far = 1e6;
    const moves = {
      ArrowLeft: [rank - 1, -1],
      ArrowRight: [rank - 1, 1],
      ArrowUp: [rank - 2, -1],
      ArrowDown: [rank - 2, 1],
      PageUp: [rank - 3, -1],
      PageDown: [rank - 3, 1],
      Home: [rank - 1, -far],
      End: [rank - 1, far],
    };
    if (event.key === "Escape") rest();
    else if (moves[event.key]) move(...moves[event.key]);
    else return;
    event.preventDefault();
  });
});
