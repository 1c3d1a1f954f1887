"use strict";
// The documentation's pages: search, the table of contents on narrow screens, and the colours of the playground.
(() => {
  try {
    const theme = localStorage.getItem("simulcast-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Without storage the system's colours hold.
  }
  const root = document.body.dataset.root;
  const menu = document.getElementById("menu");
  menu.addEventListener("click", () => {
    const open = document.body.classList.toggle("is-open");
    menu.setAttribute("aria-expanded", String(open));
  });

  const field = document.getElementById("search");
  const list = document.getElementById("found");
  let index = null;
  let chosen = -1;
  const load = () => {
    index ??= fetch(`${root}docs/search.json`).then((answer) => answer.json())
      .then((parts) => parts.map(([link, page, title, text]) => ({ link, page, title, text, low: `${page} ${title} ${text}`.toLowerCase(), head: `${title} ${page}`.toLowerCase() })));
    return index;
  };
  const choose = (at) => {
    const all = [...list.querySelectorAll("a")];
    chosen = all.length ? (at + all.length) % all.length : -1;
    all.forEach((own, number) => own.parentElement.setAttribute("aria-selected", String(number === chosen)));
    if (chosen >= 0) {
      field.setAttribute("aria-activedescendant", all[chosen].parentElement.id);
      all[chosen].scrollIntoView({ block: "nearest" });
    }
  };
  const search = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const parts = words.length ? await load() : [];
    const scored = parts.filter((part) => words.every((word) => part.low.includes(word)))
      .map((part) => [words.reduce((sum, word) => sum + (part.head.includes(word) ? 4 : 1) + (part.head.startsWith(word) ? 3 : 0), 0), part]);
    scored.sort((a, b) => b[0] - a[0]);
    list.replaceChildren(...scored.slice(0, 12).map(([, part], number) => {
      const item = document.createElement("li");
      item.id = `found-${number}`;
      item.setAttribute("role", "option");
      const link = document.createElement("a");
      link.href = `${root}docs/${part.link}`;
      link.tabIndex = -1;
      const title = document.createElement("b");
      title.textContent = part.title;
      const page = document.createElement("span");
      page.textContent = part.title === part.page ? part.text.slice(0, 90) : part.page;
      link.append(title, page);
      item.append(link);
      return item;
    }));
    if (words.length && !scored.length) {
      const none = document.createElement("li");
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.textContent = "Nothing found";
      list.replaceChildren(none);
    }
    list.hidden = words.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    choose(0);
  };
  field.addEventListener("input", search);
  field.addEventListener("focus", load, { once: true });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") list.querySelectorAll("a")[chosen]?.click();
    else if (event.key === "Escape") { field.value = ""; search(); }
    else return;
    event.preventDefault();
  });
  // The playground is loaded where somebody opens it, the first one on a page at once.
  const embeds = [...document.querySelectorAll("details.embed")];
  for (const embed of embeds) {
    const frame = embed.querySelector("iframe");
    embed.addEventListener("toggle", () => {
      if (!embed.open || frame.src) return;
      frame.addEventListener("load", () => {
        const shown = frame.contentDocument.body;
        new ResizeObserver(() => { frame.style.height = `${shown.scrollHeight + 2}px`; }).observe(shown);
      });
      frame.src = frame.dataset.src;
    });
  }
  if (embeds.length) embeds[0].open = true;

  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
  });
})();
