// What several views show: the verdict, findings, fixes, cost, constraints, text.

import { h, counted, hueOf, rich } from "./dom.js";
import { shapeText } from "./axes.js";

/** Titles and explanations by code; filled when the compiled code has said them. */
export const codes = new Map();

const pageOf = (code) => (codes.get(code)?.page ?? "docs/findings/README.md").replace(".md", ".html");

export function badge(code, isError = false) {
  const known = codes.get(code);
  return h("a", { class: `badge${isError ? " error" : ""}`, href: pageOf(code), title: known?.title ?? code }, code);
}

/** Whether it broadcasts, and to what. */
export function verdict(shown) {
  const { error, result, constraints } = shown.explanation;
  if (error) {
    return h("div", { class: "verdict is-bad" }, h("span", { class: "word" }, "does not broadcast"), badge(error.code, true),
      h("span", { class: "why" }, error.clashes.map((clash) => clash.message).join("; ")));
  }
  const open = constraints?.length > 0;
  return h("div", { class: `verdict${open ? " is-open" : ""}` },
    h("span", { class: "word" }, open ? "broadcasts, if" : "broadcasts to"),
    h("span", { class: "shape" }, shapeText(result.shape)),
    open && h("span", { class: "why" }, constraints.map((need) => need.text).join("; ")));
}

function fixButton(fix, apply) {
  return h("button", { type: "button", class: "fix", onclick: () => apply(fix) }, fix.text);
}

function fixesOf(fixes, apply) {
  const own = (fixes ?? []).filter(Boolean);
  return own.length > 0 && h("div", { class: "fixes" }, own.map((fix) => fixButton(fix, apply)));
}

/** Fixes of an error, each applied by a click. */
export function fixesCard(shown, apply) {
  const fixes = (shown.fixes ?? []).filter(Boolean);
  if (!shown.explanation.error) return null;
  return h("section", { class: "card fixes-card" }, h("h2", {}, fixes.length ? "Fixes, each checked to work" : "No small change fixes it"),
    fixes.length ? h("div", { class: "fixes" }, fixes.map((fix) => fixButton(fix, apply)))
      : h("p", { class: "hint" }, "Neither a new axis, nor another order of axes, nor another rule makes these shapes meet."));
}

/** The message without the title that stands above it. */
function bare({ code, message }) {
  const title = codes.get(code)?.title;
  return title && message.startsWith(`${title}: `) ? message.slice(title.length + 2) : message;
}

export function findingsCard(shown, apply) {
  const findings = shown.explanation.findings ?? [];
  if (!findings.length) return null;
  return h("section", { class: "card findings-card" }, h("h2", {}, "Legal, and worth a look"),
    findings.map((finding, at) => h("div", { class: "finding" },
      h("p", {}, badge(finding.code), " ", h("strong", {}, codes.get(finding.code)?.title ?? ""),
        finding.certainty && h("span", { class: "badge plain" }, finding.certainty)),
      h("p", {}, rich(bare(finding))),
      codes.get(finding.code) && h("p", { class: "more" }, rich(codes.get(finding.code).explanation)),
      apply && fixesOf(shown.finding_fixes?.[at], apply))));
}

/** Elements, exactly, however many; null where a size is not known. */
export function elements(shape) {
  if (!Array.isArray(shape) || !shape.every((size) => typeof size === "number")) return null;
  return shape.reduce((product, size) => product * BigInt(size), 1n);
}

export function bar(label, value, most, hue = "", shown = counted(value)) {
  const width = most > 0n ? Number((BigInt(value) * 1000n) / most) / 10 : 0;
  return h("div", { class: `bar ${hue}` }, h("span", {}, label), h("b", {}, shown), h("i", { vars: { "--width": `${width}%` }, "aria-hidden": "true" }));
}

export function costCard(shown) {
  const { operands, result, error } = shown.explanation;
  if (error || !result) return null;
  const made = elements(result.shape);
  const stored = (operands ?? []).map((operand) => elements(operand.shape));
  if (made === null || stored.includes(null)) return null;
  const sum = stored.reduce((all, own) => all + own, 0n);
  const most = [made, ...stored].reduce((best, own) => (own > best ? own : best), 1n);
  const growth = sum > 0n ? Number((made * 1000n) / sum) / 1000 : null;
  return h("section", { class: "card cost-card" }, h("h2", {}, "Cost"),
    h("div", { class: "bars" },
      operands.slice(0, 8).map((operand, at) => bar(`${operand.name} stored`, stored[at], most, hueOf(at))),
      bar("result", made, most)),
    h("p", { class: "hint" },
      growth !== null && `The result has ${growth >= 100 ? Math.round(growth).toLocaleString("en-US") : growth.toFixed(1).replace(/\.0$/, "")} times the elements that are stored. `,
      "What repeats is read again (stride 0), not copied. ",
      operands.some((operand) => operand.sum_axes?.length) && `Gradients are summed: ${operands.filter((operand) => operand.sum_axes?.length).map((operand) => `${operand.name} along ${operand.sum_axes.join(", ")}`).join("; ")}.`));
}

export function constraintsCard(shown) {
  const needs = shown.explanation.constraints ?? [];
  if (!needs.length) return null;
  return h("section", { class: "card constraints-card" }, h("h2", {}, "It holds where"),
    h("ul", { class: "facts" }, needs.map((need) => h("li", {}, h("code", {}, need.text)))));
}

export function textCard(shown, wide = true) {
  return h("section", { class: `card${wide ? " wide" : ""}` },
    h("details", { class: "text" }, h("summary", {}, "As text, as the command prints it"), h("pre", { tabIndex: 0 }, shown.text)));
}
