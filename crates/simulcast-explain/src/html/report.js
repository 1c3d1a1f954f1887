"use strict";
// Filters the parts of a report by words; opens the part that a link leads to.
{
  const box = document.getElementById("filter");
  const count = document.getElementById("count");
  const parts = [...document.querySelectorAll("details.part")];
  const groups = [...document.querySelectorAll("details.group")];
  const codes = [...document.querySelectorAll("button[data-code]")];
  const texts = parts.map((part) => (part.firstElementChild.textContent + " " + part.closest(".group").dataset.name).toLowerCase());
  // What was open before the first word, so that an empty box shows it again.
  let before = null;

  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    before ??= groups.map((group) => group.open);
    let shown = 0;
    parts.forEach((part, at) => {
      part.hidden = !words.every((word) => texts[at].includes(word));
      shown += !part.hidden;
    });
    groups.forEach((group, at) => {
      group.hidden = !group.querySelector(".part:not([hidden])");
      group.open = words.length ? !group.hidden : before[at];
    });
    if (!words.length) before = null;
    codes.forEach((code) => code.setAttribute("aria-pressed", words.includes(code.dataset.code.toLowerCase())));
    count.textContent = words.length ? shown + " of " + parts.length : "";
  };
  const follow = () => {
    const part = document.getElementById(location.hash.slice(1));
    if (!part || !part.matches(".part")) return;
    if (part.hidden) {
      box.value = "";
      filter();
    }
    part.closest(".group").open = true;
    part.open = true;
    part.scrollIntoView();
  };

  box.parentElement.hidden = false;
  box.addEventListener("input", filter);
  codes.forEach((code) =>
    code.addEventListener("click", () => {
      box.value = code.getAttribute("aria-pressed") === "true" ? "" : code.dataset.code;
      filter();
    }),
  );
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== box) {
      box.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && box.value) {
      box.value = "";
      filter();
    }
  });
  follow();
}
