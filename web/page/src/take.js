// What is taken along: a link, and an explanation or an expression as text for an issue, for Python, for Rust, for a shell.

import { h, copy } from "./dom.js";
import { written } from "./link.js";

/** The address of a state. */
export const addressOf = (view, pairs) => new URL(written(view, pairs), location.href).href;

/** A card of buttons that copy; `kinds` are names with what makes their text. */
export function takeCard(view, pairs, kinds) {
  const button = (name, what, made) => h("button", { type: "button", class: "soft", onclick: () => copy(made(), what) }, name);
  return h("section", { class: "card tools-card" }, h("h2", {}, "Take it along"), h("div", { class: "tools" },
    button("Copy link", "Link", () => addressOf(view, pairs())),
    Object.entries(kinds).map(([name, made]) => button(name, name, made))));
}

/** An explanation for an issue or a forum. */
export function markdown(text, address) {
  return `\`\`\`text\n${text.trimEnd()}\n\`\`\`\n\n[Open it in the browser](${address})\n`;
}

const word = (text) => (/^[\w,.:=@/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function shell({ shapes, rule, sizes }) {
  const options = [...(rule === "numpy" ? [] : ["--rule", word(rule)]), ...Object.entries(sizes).flatMap(([name, size]) => ["--set", word(`${name}=${size}`)])];
  return ["simulcast explain", ...options, ...shapes.map(word)].join(" ");
}

export function python({ shapes, rule, sizes }) {
  const list = shapes.map((shape) => JSON.stringify(bind(shape, sizes))).join(", ");
  return `import simulcast\n\nprint(simulcast.explain(${list}${rule === "numpy" ? "" : `, rule=${JSON.stringify(rule)}`}))\n`;
}

export function rust({ shapes, rule, sizes }) {
  const list = shapes.map((shape) => JSON.stringify(shape)).join(", ");
  const sets = Object.entries(sizes).map(([name, size]) => `request.set(${JSON.stringify(name)}, ${size})?;\n`).join("");
  return [
    "use simulcast_core::{Request, ShapeText};",
    "use simulcast_explain::{Subject, TextOptions, text};",
    "",
    `let operands = [${list}].map(str::parse::<ShapeText>).into_iter().collect::<Result<Vec<_>, _>>()?;`,
    `let ${sets ? "mut " : ""}request = Request::new(${JSON.stringify(rule)}.parse()?, operands)?;`,
    `${sets}let outcome = request.resolve();`,
    'println!("{}", text(&Subject::of(&outcome, &request.names, &[]), TextOptions::default()));',
    "",
  ].join("\n");
}

/** An operand with sizes in the place of its symbols. */
function bind(shape, sizes) {
  const [, name = "", rest] = /^([\p{L}_][\p{L}\p{N}_.]*:)?(.*)$/su.exec(shape) ?? [null, "", shape];
  return name + Object.entries(sizes).reduce((text, [symbol, size]) =>
    text.replace(new RegExp(`(?<![\\p{L}\\p{N}_])${symbol}(@[\\d.]+)?(?![\\p{L}\\p{N}_=])`, "gu"), String(size)), rest);
}
