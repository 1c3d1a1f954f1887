import assert from "node:assert/strict";
import { check, copied, eventually, open } from "./support.mjs";

const out = (page) => page.locator("#error-out").innerText();

check("the errors of five libraries are explained", async (page) => {
  await open(page, "#/error");
  const wanted = {
    NumPy: /image[\s\S]*mask\[:, None, :\]/, PyTorch: /[\s\S]*shape/, JAX: /does not broadcast/, TensorFlow: /does not broadcast/, "ONNX Runtime": /ONNX Runtime/,
  };
  for (const [library, words] of Object.entries(wanted)) {
    await page.locator("#error-examples button", { hasText: new RegExp(`^${library}$`) }).click();
    await eventually(() => out(page), words, library);
  }
});

check("a traceback is pasted, its fix opens under Shapes", async (page) => {
  await open(page, "#/error");
  const log = 'step 12 loss 0.3\nTraceback (most recent call last):\n  File "train.py", line 41, in <module>\n    loss = pred - target\n           ~~~~~^~~~~~~~\nValueError: operands could not be broadcast together with shapes (2,3,4) (2,4) \n';
  await page.evaluate((text) => navigator.clipboard.writeText(text), log);
  await page.focus("#error-text");
  await page.keyboard.press("Control+V");
  await eventually(() => out(page), /NumPy[\s\S]*loss = pred - target[\s\S]*axis 1 \(-2\): pred has 3, target has 2/);
  const address = page.url();
  const link = await copied(page, "Copy link");
  assert.equal(link, address);
  assert.match(await copied(page, "Markdown"), /pred[\s\S]*\]\(http/);
  assert.equal(await copied(page, "Python"), 'import simulcast\n\nprint(simulcast.explain("pred:2,3,4", "target:2,4"))\n');
  await page.click("text=target[:, None, :]");
  assert.equal(await page.locator("#tab-shapes").getAttribute("aria-selected"), "true");
  assert.equal(await page.locator("#operand-1").inputValue(), "target:2,1,4");
  await page.goto("about:blank");
  await page.goto(address);
  await eventually(() => out(page), /pred has 3, target has 2/);
});

check("a message without shapes asks for them", async (page) => {
  await open(page, "#/error");
  await page.fill("#error-text", "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1");
  await eventually(() => out(page), /a\.shape/);
  await page.fill('input[aria-label="Shape of a"]', "2,3");
  await page.fill('input[aria-label="Shape of b"]', "2,2");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator("#shapes-status").innerText(), /axis 1 \(-1\): a has 3, b has 2/);
});

check("a text without an error is said to have none", async (page) => {
  await open(page, "#/error");
  await page.fill("#error-text", "everything is fine");
  await eventually(() => out(page), /No broadcasting error/);
  await page.fill("#error-text", "");
  await eventually(() => out(page), "");
  // As long as a whole log.
  await page.evaluate((text) => navigator.clipboard.writeText(text), `${"some line of a log\n".repeat(20_000)}jax: add got incompatible shapes for broadcasting: (2, 3), (4,).`);
  await page.focus("#error-text");
  await page.keyboard.press("Control+V");
  await eventually(() => out(page), /JAX/);
  // And one of very many errors.
  await page.fill("#error-text", "");
  await page.fill("#error-text", Array.from({ length: 200 }, (_, at) => `TypeError: add got incompatible shapes for broadcasting: (2, 3), (2, ${at + 4}).\n`).join(""));
  await eventually(() => out(page), /and 170 more errors in this text/);
});
