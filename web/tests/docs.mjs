import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { check, eventually, FOLDER, NARROW, overflow, SITE, violations } from "./support.mjs";

const pages = fs.readdirSync(FOLDER, { recursive: true }).filter((file) => file.endsWith(".html")).map((file) => file.split(path.sep).join("/")).sort();

test("every link of the site leads somewhere", () => {
  const read = (file) => fs.readFileSync(path.join(FOLDER, file), "utf8");
  const ids = new Map(pages.map((file) => [file, new Set([...read(file).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]));
  const wrong = [];
  let links = 0;
  for (const file of pages) {
    for (const [, link] of read(file).matchAll(/ (?:href|src|data-src)="([^"]*)"/g)) {
      if (/^(https:|mailto:|data:)/.test(link)) continue;
      links += 1;
      const [target, anchor = ""] = link.split("#");
      const found = target ? path.posix.join(path.posix.dirname(file), target) : file;
      if (!fs.existsSync(path.join(FOLDER, found))) wrong.push(`${file}: ${link}`);
      else if (anchor && !anchor.startsWith("/") && !ids.get(found)?.has(anchor)) wrong.push(`${file}: no anchor ${link}`);
    }
  }
  assert.deepEqual(wrong, []);
  console.log(`   ${links} links of ${pages.length} pages`);
});

check("every code has its page", async (page) => {
  await page.goto(`${SITE}docs/findings/index.html`);
  for (const code of ["SC100", "SC102", "SC112"]) assert.ok(pages.includes(`docs/findings/${code}.html`));
  const { codes } = await page.goto(SITE).then(() => page.evaluate(async () => {
    const module = await WebAssembly.compileStreaming(fetch("simulcast.wasm"));
    const own = new WebAssembly.Instance(module, { host: { file_size: () => -1n, file_read: () => 0 } }).exports;
    const bytes = new TextEncoder().encode('{"do":"facts"}');
    const at = own.room(bytes.length);
    new Uint8Array(own.memory.buffer, at, bytes.length).set(bytes);
    own.ask(at, bytes.length, own.room(0), 0);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(own.memory.buffer, own.answer_at(), own.answer_len())));
  }));
  for (const { code, page: place } of codes) {
    const [file, anchor] = place.replace(".md", ".html").split("#");
    assert.ok(pages.includes(file), `${code}: ${place}`);
    if (anchor) assert.ok(fs.readFileSync(path.join(FOLDER, file), "utf8").includes(` id="${anchor}"`), `${code}: ${place}`);
  }
});

check("the search finds a page by words and keys", async (page) => {
  await page.goto(`${SITE}docs/index.html`);
  await page.keyboard.press("/");
  await page.keyboard.type("column meets row");
  await eventually(() => page.locator("#found").innerText(), /SC102: a column meets a row/);
  await page.fill("#search", "sc102");
  await eventually(() => page.locator("#found li").first().innerText(), /SC102/);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL(/SC102\.html/);
  await page.fill("#search", "zzzz nothing");
  await eventually(() => page.locator("#found").innerText(), /Nothing found/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#found").isVisible(), false);
});

check("the playground is in the page of a finding, and works there", async (page) => {
  await page.goto(`${SITE}docs/findings/SC102.html`);
  const frame = page.frameLocator("iframe.playground").first();
  await eventually(() => frame.locator("#shapes-status .shape").innerText(), "(32, 32)");
  assert.equal(await frame.locator(".top").isVisible(), false);
  await frame.locator(".findings-card .fix").first().click();
  await eventually(() => frame.locator("#shapes-status .shape").innerText(), "(32, 1)");
  await eventually(async () => (await page.locator("iframe.playground").first().boundingBox()).height > 400, true, "the frame is as high as its page");
  await page.locator(".embed a.try").first().click();
  await page.waitForURL(/index\.html#\/shapes\?op=pred:32,1&op=target:32$/);
  await page.goto(`${SITE}docs/reference/rules.html`);
  await eventually(() => page.frameLocator("iframe.playground").first().locator("#shapes-status").innerText(), /\(0, 3\)/);
});

for (const [name, window] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, narrow: { viewport: NARROW } })) {
  check(`axe finds nothing wrong in the documentation: ${name}`, window, async (page) => {
    for (const file of ["docs/index.html", "docs/findings/SC102.html", "docs/reference/rules.html", "docs/reference/python.html", "docs/guide/playground.html", "docs/pictures.html"]) {
      await page.goto(SITE + file);
      await page.waitForLoadState("networkidle");
      assert.deepEqual(await violations(page), [], file);
      assert.equal(await overflow(page), "", file);
      await page.screenshot({ path: `${process.env.WEB_TOOLS}/screens/${path.basename(file, ".html")}-${name}.png` });
    }
  });
}

check("on narrow screens the contents open by a button", { viewport: NARROW }, async (page) => {
  await page.goto(`${SITE}docs/index.html`);
  assert.equal(await page.locator("#contents").isVisible(), false);
  await page.click("#menu");
  await page.click("#contents >> text=SC102");
  await page.waitForURL(/SC102/);
});
