// Elements from data. Texts never become markup.

/** @returns {HTMLElement} */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, own] of Object.entries(value)) element.style.setProperty(key, own);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

export const byId = (id) => document.getElementById(id);

/** Markup of a picture that our own code drew, as an element. */
export function drawn(markup) {
  const parsed = new DOMParser().parseFromString(markup, "image/svg+xml");
  return document.importNode(parsed.documentElement, true);
}

/** Says for a moment what was done. */
let toasting = 0;
export function toast(text) {
  const place = byId("toast");
  place.textContent = text;
  place.classList.add("is-shown");
  clearTimeout(toasting);
  toasting = setTimeout(() => place.classList.remove("is-shown"), 2200);
}

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    const area = h("textarea", { class: "quiet" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    toast(done ? `${what} copied` : `${what} cannot be copied here`);
  }
}

export function download(name, type, bytes) {
  const address = URL.createObjectURL(new Blob([bytes], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** `1,680`; exact for any size. */
export const counted = (value) => BigInt(value).toLocaleString("en-US");

/** `12.5 MiB` */
export function bytesOf(value) {
  let size = Number(value);
  let unit = "B";
  for (const next of ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
    if (size < 1024) break;
    [size, unit] = [size / 1024, next];
  }
  return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
}

export const hueOf = (operand) => `o${operand % 6}`;

/** Calls at most once a frame, with the latest arguments. */
export function eachFrame(then) {
  let waiting = null;
  return (...args) => {
    if (waiting === null) requestAnimationFrame(() => { const now = waiting; waiting = null; then(...now); });
    waiting = args;
  };
}

/** A text with `code` in backticks. */
export const rich = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
