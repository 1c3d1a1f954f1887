// Who reaches the page, and what reaches out of it: accessibility, narrow windows, the policy.

import assert from "node:assert/strict";
import fs from "node:fs";
import { check, eventually, NARROW, open, overflow, SITE, violations } from "./support.mjs";

const STATES = {
  shapes: "#/shapes?op=8,1,6,1&op=7,1,5",
  picture: "#/shapes?op=3,1&op=4",
  clash: "#/shapes?op=image:2,3,4&op=mask:2,4",
  symbols: "#/shapes?op=x:N,3&op=y:4,M&rule=numpy",
  error: "#/error?text=ValueError:%20operands%20could%20not%20be%20broadcast%20together%20with%20shapes%20(2,3,4)%20(2,4)",
  expression: "#/expression",
  wrong: "#/expression?text=2%20*%20(image%20-%20mean)&op=image:32,64,56,56&type=float32&op=mean:64&type=float32",
  model: "#/model",
};
const loss = fs.readFileSync(new URL("../../crates/simulcast-onnx/models/loss.onnx", import.meta.url));

/** Everything that there is to see, one state after another. */
async function each(page, then) {
  for (const [name, link] of Object.entries(STATES)) {
    await open(page, `?${name}${link}`);
    if (name === "model") {
      await page.setInputFiles("#model-file", { name: "loss.onnx", mimeType: "application/octet-stream", buffer: loss });
      await page.locator(".grid tbody button").first().click();
      await page.locator("#model-detail .axes").waitFor();
    }
    await page.evaluate(() => document.querySelectorAll("details").forEach((own) => { own.open = true; }));
    await then(name);
  }
}

for (const [name, window] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, narrow: { viewport: NARROW } })) {
  check(`axe finds nothing wrong: ${name}`, { ...window, reducedMotion: "reduce" }, async (page) => {
    await each(page, async (state) => {
      assert.deepEqual(await violations(page), [], state);
      assert.equal(await overflow(page), "", state);
      fs.mkdirSync(`${process.env.WEB_TOOLS}/screens`, { recursive: true });
      await page.screenshot({ path: `${process.env.WEB_TOOLS}/screens/${state}-${name}.png`, fullPage: true });
    });
  });
}

check("the table says in words what the picture shows", async (page) => {
  await open(page, "#/shapes?op=image:2,3,4&op=mask:2,4");
  const table = page.getByRole("table", { name: /Which axis of each operand meets/ });
  assert.equal(await table.getByRole("columnheader").count(), 3);
  assert.deepEqual(await table.getByRole("row", { name: /^mask/ }).getByRole("cell").allInnerTexts().then((cells) => cells.map((cell) => cell.split("\n").at(-1).trim())), ["no axis, repeated", "2, clashes", "4", "(2, 4)"]);
  assert.equal(await page.getByRole("status").first().getAttribute("aria-live"), "polite");
});

check("the keyboard reaches everything, from the first key on", async (page) => {
  await open(page);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const seen = new Set();
  for (let at = 0; at < 60; at += 1) {
    await page.keyboard.press("Tab");
    const [name, ring] = await page.evaluate(() => {
      const own = document.activeElement;
      const style = getComputedStyle(own);
      const line = own.closest(".operand-line");
      return [own.id || (own.className === "slices" && own.className) || own.textContent.trim(), style.outlineStyle !== "none" || (line && getComputedStyle(line).borderColor !== "") || own === document.body];
    });
    assert.ok(ring, `${name} shows no focus`);
    seen.add(name);
  }
  for (const wanted of ["tab-shapes", "theme", "operand-0", "operand-1", "add-operand", "rule", "Copy link", "SVG", "slices"]) assert.ok(seen.has(wanted), `${wanted} of ${[...seen]}`);
});

check("colours are those of the system, or chosen, and kept", { colorScheme: "dark" }, async (page) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await open(page);
  assert.equal(await paper(), "rgb(13, 16, 20)");
  await page.click("#theme");
  assert.equal(await paper(), "rgb(246, 245, 241)");
  await page.reload();
  await page.waitForSelector("html[data-ready]");
  assert.equal(await paper(), "rgb(246, 245, 241)");
  await page.goto(`${SITE}docs/index.html`);
  assert.equal(await paper(), "rgb(246, 245, 241)");
});

check("the policy forbids everything from outside", { expects: ["violates the following Content Security Policy", "Fetch API cannot load", "example.com", "Refused"] }, async (page) => {
  await page.route("https://example.com/**", (route) => route.fulfill({ body: "reached" }));
  for (const place of ["", "docs/index.html"]) {
    await page.goto(SITE + place);
    const blocked = await page.evaluate(async () => {
      const found = [];
      document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
      const tries = {
        fetch: () => fetch("https://example.com/data").then(() => "reached", () => "blocked"),
        image: () => new Promise((done) => { const image = new Image(); image.onload = () => done("reached"); image.onerror = () => done("blocked"); image.src = "https://example.com/i.png"; }),
        script: () => new Promise((done) => { const script = document.createElement("script"); script.onload = () => done("reached"); script.onerror = () => done("blocked"); script.src = "https://example.com/s.js"; document.head.append(script); }),
        inline: () => { const script = document.createElement("script"); script.textContent = "globalThis.ran = true"; document.head.append(script); return globalThis.ran ? "reached" : "blocked"; },
        eval: () => { try { return (0, eval)("'reached'"); } catch { return "blocked"; } },
        style: () => { const style = document.createElement("style"); style.textContent = "body{opacity:0.5}"; document.head.append(style); return getComputedStyle(document.body).opacity === "0.5" ? "reached" : "blocked"; },
      };
      const results = {};
      for (const [name, attempt] of Object.entries(tries)) results[name] = await attempt();
      await new Promise((done) => setTimeout(done, 50));
      return [results, [...new Set(found)].sort()];
    });
    assert.deepEqual(blocked[0], { fetch: "blocked", image: "blocked", script: "blocked", inline: "blocked", eval: "blocked", style: "blocked" }, place);
    assert.ok(blocked[1].includes("connect-src"), blocked[1].join());
  }
});

check("without the compiled code the page says so", { expects: ["simulcast.wasm", "Failed to load resource"] }, async (page) => {
  await page.route("**/simulcast.wasm", (route) => route.fulfill({ status: 404, body: "" }));
  await page.goto(SITE);
  await eventually(() => page.locator("#trouble").innerText(), /cannot be loaded/);
});
