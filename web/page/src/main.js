// The start: on the page, tabs, colours and links; in a worker, models.

import { byId, h } from "./dom.js";
import { Engine, WASM } from "./engine.js";
import { codes } from "./parts.js";
import { read, isOwn } from "./link.js";
import { Shapes } from "./shapes.js";
import { Errors } from "./error.js";
import { Expressions } from "./expression.js";
import { Models } from "./model.js";

const isPage = typeof document !== "undefined";
/** The script's own address, which a worker runs too. */
const SCRIPT = isPage ? document.currentScript.src : "";

function trouble(text) {
  const place = byId("trouble");
  place.textContent = text;
  place.hidden = false;
}

/** Colours: as the system has them, light, dark. */
function themes() {
  const names = ["system", "light", "dark"];
  const button = byId("theme");
  let now = 0;
  try {
    now = Math.max(0, names.indexOf(localStorage.getItem("simulcast-theme")));
  } catch {
    // Without storage the choice is not kept.
  }
  const show = () => {
    if (now) document.documentElement.dataset.theme = names[now];
    else delete document.documentElement.dataset.theme;
    const text = `Colours: ${now ? names[now] : "as the system"}`;
    button.setAttribute("aria-label", text);
    button.title = text;
  };
  button.addEventListener("click", () => {
    now = (now + 1) % names.length;
    show();
    try {
      localStorage.setItem("simulcast-theme", names[now]);
    } catch {
      // As above.
    }
  });
  show();
}

async function page() {
  themes();
  addEventListener("error", (event) => trouble(`Something went wrong on this page: ${event.message}. Please report it with the address above.`));
  let module;
  try {
    module = await WebAssembly.compileStreaming(fetch(WASM));
  } catch (error) {
    return trouble(`The compiled code cannot be loaded: ${error.message}. Served from a file? Use \`cargo xtask web --serve\`, or any web server.`);
  }
  const engine = new Engine(module);
  const { answer: facts } = engine.call({ do: "facts" });
  for (const code of facts.codes) codes.set(code.code, code);
  byId("version").textContent = `Version ${facts.version}.`;
  const tabs = [...document.querySelectorAll("[data-tab]")];
  const views = {};
  const open = (name, fields) => {
    for (const tab of tabs) {
      const chosen = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(`view-${tab.dataset.tab}`).hidden = !chosen;
    }
    views[name].fromLink(fields ?? new URLSearchParams());
  };
  views.shapes = new Shapes(engine, facts.rules);
  views.error = new Errors(engine, (state) => { open("shapes"); views.shapes.set(state); });
  views.expression = new Expressions(engine);
  views.model = new Models(() => {
    const worker = new Worker(SCRIPT);
    worker.postMessage({ module });
    return worker;
  });
  const follow = () => {
    const { view, fields } = read(location.hash);
    if (fields.has("embed")) document.documentElement.dataset.embedded = "";
    open(views[view] ? view : "shapes", fields);
  };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => open(tab.dataset.tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(at + step + tabs.length) % tabs.length];
      next.focus();
      open(next.dataset.tab);
    });
  });
  addEventListener("hashchange", () => { if (!isOwn()) follow(); });
  follow();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

/** In a worker: a model, read with what was chosen beside it, and questions about it. */
function worker() {
  let engine = null;
  let beside = [];
  const reader = new FileReaderSync();
  const named = (name) => beside.find((file) => name === file.name || name.endsWith(`/${file.name}`));
  const files = {
    size: (name) => named(name)?.size ?? -1,
    read: (name, at, into) => {
      const file = named(name);
      if (!file || at + into.length > file.size) return false;
      into.set(new Uint8Array(reader.readAsArrayBuffer(file.slice(at, at + into.length))));
      return true;
    },
  };
  addEventListener("message", ({ data }) => {
    if (data.module) {
      engine = new Engine(data.module, files);
      return;
    }
    let file = new Uint8Array();
    try {
      if (data.files) {
        beside = data.files.beside;
        file = new Uint8Array(reader.readAsArrayBuffer(data.files.model));
      }
      const made = engine.call(data.request, file);
      postMessage({ id: data.id, answer: made.answer, file: made.file }, [made.file.buffer]);
    } catch (error) {
      postMessage({ id: data.id, answer: { usage: error.message }, file: new Uint8Array() });
    }
  });
}

if (isPage) page();
else worker();
