// What every test of the page uses: a browser, pages that are watched, and small helpers.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import test from "node:test";

const tools = createRequire(`${process.env.WEB_TOOLS}/`);
const { chromium } = tools("playwright-core");
const axe = fs.readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");

export const SITE = process.env.WEB_SITE;
export const FOLDER = process.env.WEB_FOLDER;
export const COMMAND = process.env.WEB_COMMAND;

let browser = null;
export async function start() {
  // In a container Chromium's own sandbox cannot be set up; only our own pages are opened.
  browser = await chromium.launch({ executablePath: process.env.WEB_BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
  return browser.version();
}
export const end = () => browser.close();

export const NARROW = { width: 390, height: 800 };

/**
 * A test in a fresh window. Errors on the console, failures of scripts, broken policies and requests to anywhere else make
 * it fail, unless `expects` names them.
 */
export function check(name, options, body) {
  if (typeof options === "function") [options, body] = [{}, options];
  const { expects = [], ...window } = options;
  test(name, async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...window });
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(SITE).origin });
    context.setDefaultTimeout(15_000);
    const troubles = [];
    const note = (text) => { if (!expects.some((known) => text.includes(known))) troubles.push(text); };
    context.on("console", (message) => { if (["error", "warning"].includes(message.type())) note(message.text()); });
    context.on("weberror", (error) => note(String(error.error())));
    context.on("request", (request) => {
      if (!request.url().startsWith(SITE) && !/^(data|blob):/.test(request.url())) note(`a request to ${request.url()}`);
    });
    context.on("requestfailed", (request) => note(`${request.url()} failed`));
    context.on("response", (response) => { if (response.status() >= 400) note(`${response.url()}: ${response.status()}`); });
    const page = await context.newPage();
    try {
      await body(page);
      assert.deepEqual(troubles, []);
    } catch (error) {
      const shot = `${process.env.WEB_TOOLS}/failed-${name.replace(/\W+/g, "-")}.png`;
      await page.screenshot({ path: shot, fullPage: true }).catch(() => {});
      error.message += `\n(${page.url()}; a screenshot is ${shot}; ${troubles.join("; ") || "no other troubles"})`;
      throw error;
    } finally {
      await context.close();
    }
  });
}

/** Opens the page with a state, and waits until it is shown. */
export async function open(page, fragment = "") {
  await page.goto(SITE + fragment);
  await page.waitForSelector("html[data-ready], #trouble:not([hidden])");
}

/** Waits until a value is as expected, and fails with what it was. */
export async function eventually(get, wanted, what = "") {
  let got;
  for (const began = Date.now(); Date.now() - began < 8000; await new Promise((done) => setTimeout(done, 25))) {
    try {
      got = await get();
      if (wanted instanceof RegExp ? wanted.test(got) : got === wanted) return;
    } catch (error) {
      got = error.message;
    }
  }
  assert.fail(`${what || get} is ${JSON.stringify(got)}, not ${wanted}`);
}

/** What the chips of a row of the table say, without spaces. */
export const chips = async (row) => (await row.locator(".chip > span:first-child").allInnerTexts()).map((text) => text.replace(/\s/g, ""));

export const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

/** Presses a button that copies, and takes what it copied. */
export async function copied(page, name) {
  await page.evaluate(() => navigator.clipboard.writeText("-"));
  await page.locator(".tools-card button", { hasText: new RegExp(`^${name}$`) }).locator("visible=true").click();
  await eventually(async () => (await clipboard(page)) !== "-", true, `${name} in the clipboard`);
  return clipboard(page);
}

/** What axe finds wrong on the page, as lines. */
export async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}

/** Whether the page is wider than the window. */
export const overflow = (page) => page.evaluate(() => {
  const root = document.scrollingElement;
  if (root.scrollWidth <= innerWidth) return "";
  const wide = [...document.querySelectorAll("body *")].filter((own) => own.getBoundingClientRect().right > innerWidth + 1 && !own.closest(".scroll, .picture, .grid, .table, pre"));
  return `${root.scrollWidth} > ${innerWidth}: ${wide.slice(0, 3).map((own) => `${own.tagName}.${own.className}`).join(", ")}`;
});

/** Starts an instance of the compiled code in the page, as `ask(request, bytes)`. */
export async function engine(page) {
  await page.evaluate(async () => {
    const module = await WebAssembly.compileStreaming(fetch("simulcast.wasm"));
    const start = () => new WebAssembly.Instance(module, { host: { file_size: () => -1n, file_read: () => 0 } }).exports;
    let own = start();
    const put = (bytes) => {
      const at = own.room(bytes.length) >>> 0;
      new Uint8Array(own.memory.buffer, at, bytes.length).set(bytes);
      return at;
    };
    globalThis.ask = (request, file = new Uint8Array()) => {
      try {
        const bytes = new TextEncoder().encode(JSON.stringify(request));
        own.ask(put(bytes), bytes.length, put(file), file.length);
        return JSON.parse(new TextDecoder().decode(new Uint8Array(own.memory.buffer, own.answer_at() >>> 0, own.answer_len() >>> 0)));
      } catch (error) {
        own = start();
        return { trap: String(error) };
      }
    };
  });
}
