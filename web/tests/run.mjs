// Every test of the page, in one browser. `cargo xtask test web` sets what this reads from the environment.

import assert from "node:assert/strict";
import fs from "node:fs";
import { before, after, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { FOLDER, check, end, open, start } from "./support.mjs";

/** The most that the compiled code may have, compressed as servers send it. */
const WASM_BYTES = 400_000;

before(async () => console.log(`   Chromium ${await start()}`));
after(end);

test("the page is small", () => {
  for (const file of ["index.html", "style.css", "app.js", "simulcast.wasm"]) {
    const bytes = fs.readFileSync(`${FOLDER}/${file}`);
    const [gzip, brotli] = [gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes).length];
    console.log(`   ${file}: ${bytes.length} bytes, ${gzip} by gzip, ${brotli} by brotli`);
    if (file.endsWith(".wasm")) assert.ok(brotli <= WASM_BYTES, `${brotli} bytes are more than ${WASM_BYTES}`);
  }
});

check("it loads with one request for each file", async (page) => {
  const asked = [];
  page.on("request", (request) => { if (!request.url().startsWith("data:")) asked.push(new URL(request.url()).pathname); });
  for (const time of ["first", "again"]) {
    asked.length = 0;
    await open(page, `?${time}`);
    assert.deepEqual(asked.toSorted(), ["/", "/app.js", "/simulcast.wasm", "/style.css"]);
    const times = await page.evaluate(() => ({
      shown: Number(document.documentElement.dataset.ready),
      loaded: Math.round(Math.max(...performance.getEntriesByType("resource").map((file) => file.responseEnd))),
    }));
    console.log(`   ${time}: first picture ${times.shown} ms after the start, ${times.shown - times.loaded} ms after the last byte`);
  }
});

await import("./shapes.mjs");
await import("./errors.mjs");
await import("./expressions.mjs");
await import("./models.mjs");
await import("./reach.mjs");
await import("./docs.mjs");
await import("./same.mjs");
