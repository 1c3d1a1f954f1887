"use strict";
// Filters the parts of a report by words; opens the part that a link leads to.
{
  const box = document.getElementById("filter");
  const count = document.getElementById("count");
  const parts = [...document.querySelectorAll("details.part")];
  const groups = [...document.querySelectorAll("details.group")];
  const codes = [...document.querySelectorAll("button[data-code]")];
  const groupOf = (part) => part.closest(".group").dataset.name;
  const texts = parts.map((part) => [part.firstElementChild.textContent, part.dataset.scope, groupOf(part)].join(" ").toLowerCase());
  const badges = parts.map((part) => new Set([...part.querySelectorAll("summary .badge")].map((badge) => badge.textContent)));
  // The code whose button is pressed: parts that have it, and no other text of that name.
  let chosen = null;
  // What was open before the first word, so that an empty box shows it again.
  let before = null;

  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isFiltered = words.length > 0 || chosen !== null;
    before ??= groups.map((group) => group.open);
    let shown = 0;
    parts.forEach((part, at) => {
      const isOfCode = chosen === null || badges[at].has(chosen);
      part.hidden = !isOfCode || !words.every((word) => texts[at].includes(word));
      shown += !part.hidden;
    });
    groups.forEach((group, at) => {
      group.hidden = !group.querySelector(".part:not([hidden])");
      group.open = isFiltered ? !group.hidden : before[at];
    });
    if (!isFiltered) before = null;
    codes.forEach((code) => code.setAttribute("aria-pressed", code.dataset.code === chosen));
    count.textContent = isFiltered ? shown + " of " + parts.length : "";
  };
  const clear = () => {
    box.value = "";
    chosen = null;
    filter();
  };
  const follow = () => {
    const part = document.getElementById(location.hash.slice(1));
    if (!part || !part.matches(".part")) return;
    if (part.hidden) clear();
    part.closest(".group").open = true;
    part.open = true;
    part.scrollIntoView();
  };

  box.parentElement.hidden = false;
  box.addEventListener("input", filter);
  codes.forEach((code) =>
    code.addEventListener("click", () => {
      chosen = code.dataset.code === chosen ? null : code.dataset.code;
      filter();
    }),
  );
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== box) {
      box.focus();
      event.preventDefault();
    } else if (event.key === "Escape") clear();
  });
  follow();
}
