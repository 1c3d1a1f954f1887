import assert from "node:assert/strict";
import { check, chips, copied, eventually, open } from "./support.mjs";

const out = (page) => page.locator("#expression-out").innerText();

check("an expression is a tree of operations with types, shapes and costs", async (page) => {
  await open(page, "#/expression");
  assert.equal(await page.locator("#expression").inputValue(), "(image - mean) / std");
  const tree = await page.locator(".tree").innerText();
  assert.match(tree, /\(\(image - mean\) \/ std\)\s*float32 \(32, 224, 224, 3\)\s*\(image - mean\)[\s\S]*image\s*uint8 \(32, 224, 224, 3\)/);
  assert.match(await out(page), /One pass over memory[\s\S]*moved as one program\s*23\.0 MiB[\s\S]*moved one operation at a time\s*59\.7 MiB/);
  await page.locator(".tree button").nth(1).click();
  assert.equal(await page.locator(".tree button").nth(1).getAttribute("aria-pressed"), "true");
  assert.deepEqual(await chips(page.locator(".split .axes tbody tr.o1")), ["1→32", "1→224", "1→224", "3"]);
});

check("as one types, operands get fields for shape and type", async (page) => {
  await open(page, "#/expression");
  await page.fill("#expression", "a * exp(b) + 2");
  await eventually(async () => (await page.locator("#expression-operands label").allInnerTexts()).join(), "a,b", "the operands");
  await eventually(() => out(page), /give `?a`? a shape/);
  await page.fill("#shape-0", "4,1");
  await page.fill("#shape-1", "3");
  await page.selectOption('select[aria-label="Type of a"]', "float64");
  await eventually(() => page.locator(".tree").innerText(), /float64 \(4, 3\)/);
  await page.fill("#shape-1", "3,");
  await page.fill("#shape-1", "3;");
  await eventually(() => out(page), /is not a shape/);
});

check("what is hoisted is said", async (page) => {
  await open(page, "#/expression");
  await page.click("#expression-examples >> text=hoisted");
  await eventually(() => out(page), /2 passes over memory[\s\S]*exp\(sin\(row\)\)[\s\S]*hoisted: computed once/);
});

check("an error points into the text, and a click applies an edit", async (page) => {
  await open(page, "#/expression");
  await page.click("#expression-examples >> text=a clash");
  await eventually(() => page.locator(".expression-error mark").innerText(), "(image - mean)");
  await page.locator(".expression-error .fix", { hasText: "mean[:, None, None]" }).click();
  await eventually(() => page.locator(".tree").innerText(), /\(32, 64, 56, 56\)/);
  assert.match(await page.locator("#expression").inputValue(), /mean\[:, None, None\]/);
  await page.fill("#expression", "image +* mean");
  await eventually(() => page.locator(".expression-error mark").count(), 1);
  await page.fill("#expression", "imge + mean + image");
  await eventually(() => out(page), /give `?imge`? a shape/);
});

check("expressions are linked and taken along", async (page) => {
  await open(page, "#/expression");
  await page.fill("#expression", "where(m, a['x'] if 0 else a, -inf)");
  await page.fill("#expression", "where(m, a, -inf) & 1 > 0");
  await page.fill("#expression", "where(m, a, -inf)");
  await page.fill("#shape-0", "4,1,1,8");
  await page.selectOption('select[aria-label="Type of m"]', "bool");
  await page.fill("#shape-1", "4,2,8,8");
  await eventually(() => page.locator(".tree").innerText(), /where\(m, a, -inf\)\s*float32 \(4, 2, 8, 8\)/);
  const link = await copied(page, "Copy link");
  assert.equal(link, page.url());
  assert.equal(await copied(page, "Python"), "import simulcast\n\n# m: bool 4,1,1,8\n# a: float32 4,2,8,8\nresult = simulcast.evaluate(\"where(m, a, -inf)\", m=m, a=a)\n");
  assert.equal(await copied(page, "Rust"), '// m: bool 4,1,1,8\n// a: float32 4,2,8,8\nlet result = simulcast::eval("where(m, a, -inf)", (("m", &m), ("a", &a),))?;\n');
  assert.match(await copied(page, "Markdown"), /where\(m, a, -inf\)\s+float32 \(4, 2, 8, 8\)[\s\S]*pass 1/);
  const first = await out(page);
  await page.goto("about:blank");
  await page.goto(link);
  await page.waitForSelector("html[data-ready]");
  assert.equal(await out(page), first);
});
