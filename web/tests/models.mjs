import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { check, COMMAND, engine, eventually, NARROW, open, overflow, SITE, violations } from "./support.mjs";
import { chain, HOSTILE, input, int64s, message, model, node, output, raw } from "./model.mjs";

const shipped = (name) => fs.readFileSync(new URL(`../../crates/simulcast-onnx/models/${name}.onnx`, import.meta.url));
const file = (name, buffer) => ({ name, mimeType: "application/octet-stream", buffer });
const note = (page) => page.locator("#model-note").innerText();

async function choose(page, ...files) {
  await page.setInputFiles("#model-file", files);
}

/** Presses a button that downloads; the name of the file and its bytes. */
async function downloaded(page, selector) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  return [download.suggestedFilename(), fs.readFileSync(await download.path())];
}

/** What the command makes of a model. */
function command(bytes, ...words) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "simulcast-web-"));
  try {
    fs.writeFileSync(path.join(folder, "m.onnx"), bytes);
    execFileSync(COMMAND, words, { cwd: folder, stdio: "pipe" });
    return fs.readFileSync(path.join(folder, "out"));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

check("a model is checked, and every broadcast is a row with its picture", async (page) => {
  await open(page, "#/model");
  await choose(page, file("loss.onnx", shipped("loss")));
  await eventually(() => note(page), /^loss\.onnx: \d+ B, checked in \d+ ms$/);
  assert.match(await page.locator(".tiles").innerText(), /nodes[\s\S]*broadcasts[\s\S]*findings/);
  assert.match(await page.locator(".grid").innerText(), /SC110/);
  await page.locator(".grid tbody button").first().click();
  await eventually(() => page.locator("#model-detail .axes").count(), 1);
  assert.ok(await page.locator("#model-detail .cells-card, #model-detail .slices").count() > 0 || await page.locator("#model-detail .chip").count() > 0);
  await page.click("#model-detail .badge");
  await page.waitForURL(/docs\/findings\/SC1\d\d\.html/);
});

check("an example is opened by a click", async (page) => {
  await open(page, "#/model");
  for (const name of ["loss", "clash", "legacy"]) {
    await page.click(`[data-model="${name}.onnx"]`);
    await eventually(() => note(page), new RegExp(`^${name}\\.onnx: .*checked`));
  }
});

check("a file is dropped", async (page) => {
  await open(page, "#/model");
  const transfer = await page.evaluateHandle((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "clash.onnx"));
    return data;
  }, [...shipped("clash")]);
  await page.dispatchEvent("#drop", "dragover", { dataTransfer: transfer });
  assert.match(await page.locator("#drop").getAttribute("class"), /is-over/);
  await page.dispatchEvent("#drop", "drop", { dataTransfer: transfer });
  await eventually(() => note(page), /^clash\.onnx: .*checked/);
  assert.match(await page.locator(".grid").innerText(), /E1/);
  assert.match(await page.locator(".tile.is-bad").innerText(), /1\s*errors/);
});

check("the table sorts and filters, by mouse and by keys", async (page) => {
  await open(page, "#/model");
  await choose(page, file("chain.onnx", chain(60)));
  await eventually(() => note(page), /checked/);
  const first = () => page.locator(".grid tbody tr:not([aria-hidden])").first().innerText();
  const count = () => page.locator(".filters .hint").innerText();
  assert.equal(await count(), "40 of 40");
  await page.fill("#model-filter", "mul column");
  assert.equal(await count(), "20 of 40");
  await page.fill("#model-filter", "");
  await page.click('.grid th button:text-is("Node")');
  assert.match(await first(), /^v0\b/);
  assert.equal(await page.locator('.grid th[aria-sort="ascending"]').innerText(), "Node ↑".slice(0, 4));
  await page.focus('.grid th button:text-is("Node")');
  await page.keyboard.press("Enter");
  assert.match(await first(), /^v58\b/);
  await page.click('[data-kind="error"]');
  assert.equal(await count(), "0 of 40");
  await page.click('[data-kind="repeats"]');
  await page.locator(".grid tbody button").first().focus();
  for (let at = 0; at < 30; at += 1) await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "30");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator("#model-detail .axes").count(), 1);
});

check("symbols are bound", async (page) => {
  await open(page, "#/model");
  await choose(page, file("chain.onnx", chain(6)));
  await eventually(() => note(page), /checked/);
  assert.match(await page.locator(".grid").innerText(), /\(N, 64\)/);
  await page.fill('input[aria-label="Size of N"]', "32");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator(".grid").innerText(), /\(32, 64\)[\s\S]*KiB/);
  assert.equal(await page.locator('input[aria-label="Size of N"]').inputValue(), "32");
});

check("the annotated model and the reports are those of the command", async (page) => {
  await open(page, "#/model");
  const bytes = chain(6);
  await choose(page, file("chain.onnx", bytes));
  await eventually(() => note(page), /checked/);
  const [name, annotated] = await downloaded(page, "#get-annotated");
  assert.equal(name, "chain.shapes.onnx");
  assert.ok(annotated.equals(command(bytes, "onnx", "infer", "m.onnx", "-o", "out")));
  await eventually(() => note(page), /^\d+ shapes added/);
  const [page_name, html] = await downloaded(page, "#get-report");
  assert.equal(page_name, "chain.html");
  assert.match(html.toString(), /^<!DOCTYPE html>[\s\S]*chain\.onnx/);
  const [, json] = await downloaded(page, "#get-json");
  assert.equal(JSON.parse(json).model.nodes, 6);
});

for (const [name, window] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, narrow: { viewport: NARROW } })) {
  check(`a report is filtered by words, codes and scopes: ${name}`, window, async (page) => {
    const named = (op, inputs, to) => { const [, own] = node(op, inputs, [to]); return [1, Buffer.concat([own, message([3, to])])]; };
    const graph = [input("x", ["N", 1]), input("y", ["N"]), input("wide", ["N", 64]), input("row", [64])];
    for (let at = 0; at < 40; at += 1) graph.push(named(at % 2 ? "Mul" : "Add", ["wide", "row"], `/model.${at % 4}/cv${at}/own`));
    const bytes = model([...graph, named("Sub", ["x", "y"], "/head/sub"), output("/head/sub")]);
    await page.route(`${SITE}report.html`, (route) => route.fulfill({ contentType: "text/html", body: command(bytes, "onnx", "check", "m.onnx", "--html", "out") }));
    await page.goto(`${SITE}report.html`);
    assert.deepEqual(await violations(page), []);
    assert.equal(await overflow(page), "");
    const shown = () => page.locator("details.part:visible").count();
    const before = await shown();
    assert.ok(before < 41, "groups are folded");
    await page.keyboard.press("/");
    await page.keyboard.type("model.1 mul cv5");
    await eventually(() => page.locator("#count").innerText(), "1 of 41");
    assert.equal(await shown(), 1);
    await page.keyboard.press("Escape");
    await eventually(shown, before);
    await page.click('button[data-code="SC102"]');
    await eventually(() => page.locator("#count").innerText(), "1 of 41");
    await page.click('button[data-code="SC102"]');
    await page.fill("#filter", "nothing has this");
    await eventually(() => page.locator("#count").innerText(), "0 of 41");
    // A link leads to its part, whatever is hidden.
    await page.locator(".first a").first().click();
    const part = page.locator("details.part[open]", { hasText: "/head/sub" });
    await eventually(() => part.locator("svg").isVisible(), true);
    assert.deepEqual(await violations(page), []);
  });
}

check("data in files beside the model are read where a shape depends on them", async (page) => {
  await open(page, "#/model");
  const bytes = model([input("x", [6]), input("b", [3]), int64s("s", [2, 3], "data/sizes.bin"), node("Reshape", ["x", "s"], ["m"]), node("Add", ["m", "b"], ["y"]), output("y")]);
  await choose(page, file("outside.onnx", bytes));
  await eventually(() => note(page), /checked|sizes\.bin/);
  assert.doesNotMatch(await page.locator("#model-out").innerText(), /\(2, 3\)/);
  await choose(page, file("outside.onnx", bytes), file("sizes.bin", raw([2, 3])));
  await eventually(() => page.locator(".grid").innerText(), /m \(2, 3\)/);
  const [, annotated] = await downloaded(page, "#get-annotated");
  await choose(page, file("again.onnx", annotated));
  await eventually(() => page.locator(".grid").innerText(), /m \(2, 3\)/);
  // A file that is too short.
  await choose(page, file("outside.onnx", bytes), file("sizes.bin", raw([2])));
  await eventually(() => note(page), /outside\.onnx/);
  assert.doesNotMatch(await page.locator("#model-out").innerText(), /\(2, 3\)/);
});

check("5,000 nodes stay fluid", async (page) => {
  await open(page, "#/model");
  await choose(page, file("large.onnx", chain(7500)));
  await eventually(() => note(page), /checked/);
  console.log(`   ${await note(page)}`);
  assert.match(await page.locator(".filters .hint").innerText(), /^5,000 of 5,000/);
  assert.ok(await page.locator(".grid tbody tr").count() < 80);
  const frames = await page.evaluate(async () => {
    const pane = document.querySelector(".grid");
    const times = [];
    let last = performance.now();
    for (let at = 0; at < 60; at += 1) {
      pane.scrollTop = (pane.scrollHeight * at) / 60;
      await new Promise(requestAnimationFrame);
      times.push(performance.now() - last);
      last = performance.now();
    }
    pane.scrollTop = pane.scrollHeight;
    return times.sort((a, b) => a - b);
  });
  console.log(`   scrolled through: median frame ${frames[30].toFixed(0)} ms, longest ${frames.at(-1).toFixed(0)} ms`);
  await eventually(() => page.locator(".grid tbody").innerText(), /v7498/);
  const began = Date.now();
  await page.fill("#model-filter", "v7498");
  await eventually(() => page.locator(".filters .hint").innerText(), "1 of 5,000");
  console.log(`   filtered in ${Date.now() - began} ms`);
});

check("a model that takes long is stopped, and the next one is read", async (page) => {
  await open(page, "#/model");
  await choose(page, file("huge.onnx", chain(150_000)));
  await page.locator("#model-stop").click();
  await eventually(() => note(page), "huge.onnx: Stopped.");
  assert.equal(await page.locator("#model-stop").isVisible(), false);
  await choose(page, file("loss.onnx", shipped("loss")));
  await eventually(() => note(page), /^loss\.onnx: .*checked/);
});

check("models of somebody who means harm end in an error", async (page) => {
  await open(page, "#/model");
  for (const [what, bytes] of Object.entries(HOSTILE)) {
    await choose(page, file("hostile.onnx", bytes));
    await eventually(() => note(page), /^hostile\.onnx: (?!.*this cannot be answered)/, what);
    await eventually(async () => {
      const text = `${await note(page)} ${await page.locator("#model-out").innerText()}`;
      return !/Reading/.test(text) && /\d errors|: (?!\d+(\.\d)? ?B)/.test(text) && !/: \d[\d.]* \w?i?B, checked[^]*\b0\s+errors/.test(text);
    }, true, `${what}: an error, which`);
    await choose(page, file("loss.onnx", shipped("loss")));
    await eventually(() => note(page), /^loss\.onnx: .*checked/);
  }
});

check("what fuzzing found interesting is refused or explained", async (page) => {
  const corpus = new URL("../../fuzz/corpus/onnx/", import.meta.url);
  const names = fs.existsSync(corpus) ? fs.readdirSync(corpus).slice(0, 2000) : [];
  await open(page);
  await engine(page);
  for (const name of names) {
    const answer = await page.evaluate((bytes) => ask({ do: "model" }, new Uint8Array(bytes)), [...fs.readFileSync(new URL(name, corpus))]);
    assert.ok(answer.report || typeof answer.usage === "string", `${name}: ${JSON.stringify(answer)}`);
  }
  console.log(`   ${names.length} files of the fuzz corpus`);
});

check("models that are cut off or changed anywhere are refused or explained", async (page) => {
  await open(page);
  await engine(page);
  let tried = 0;
  for (const name of ["loss", "clash", "legacy"]) {
    const found = await page.evaluate((bytes) => {
      const whole = new Uint8Array(bytes);
      const bad = [];
      let times = 0;
      const attempt = (file, what) => {
        times += 1;
        const answer = ask({ do: "model" }, file);
        if (!answer.report && typeof answer.usage !== "string") bad.push(`${what}: ${JSON.stringify(answer).slice(0, 200)}`);
      };
      for (let length = 0; length < whole.length; length += 1) attempt(whole.slice(0, length), `cut at ${length}`);
      for (let at = 0; at < whole.length; at += 1) {
        for (const value of [0, 1, 0x7f, 0x80, 0xff, whole[at] ^ 1]) {
          const file = whole.slice();
          file[at] = value;
          attempt(file, `${value} at ${at}`);
        }
      }
      return [times, bad];
    }, [...shipped(name)]);
    tried += found[0];
    assert.deepEqual(found[1], [], name);
  }
  console.log(`   ${tried} models`);
});
