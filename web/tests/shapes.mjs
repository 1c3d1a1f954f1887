import assert from "node:assert/strict";
import { check, chips, copied, eventually, open, SITE } from "./support.mjs";

const verdict = (page) => page.locator("#shapes-status").innerText();
const result = (page) => page.locator("#shapes-status .shape").innerText();
const type = async (page, at, text) => page.locator(`#operand-${at}`).fill(text);

/** Types operands into fresh fields. */
async function operands(page, ...shapes) {
  while ((await page.locator("#operands li").count()) < shapes.length) await page.click("#add-operand");
  while ((await page.locator("#operands li").count()) > shapes.length) await page.locator("#operands li button").last().click();
  for (const [at, shape] of shapes.entries()) await type(page, at, shape);
}

check("the first look explains 8,1,6,1 against 7,1,5", async (page) => {
  await open(page);
  assert.equal(await result(page), "(8, 7, 6, 5)");
  assert.deepEqual(await chips(page.locator("#shapes-out tbody tr.o1")), ["1→8", "7", "1→6", "5"]);
  assert.deepEqual(await page.locator("#shapes-cards .finding a.badge").allInnerTexts(), ["SC101", "SC105"]);
  assert.match(await page.locator(".cost-card").innerText(), /1,680[\s\S]*20\.2 times/);
});

check("as one types, the table follows", async (page) => {
  await open(page);
  await page.locator("#operand-0").click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("x:2,,");
  await eventually(() => page.locator("#wrong-0").innerText(), /an axis is empty/);
  await page.keyboard.press("Backspace");
  await page.keyboard.type("3,4");
  await type(page, 1, "3,1");
  await eventually(() => result(page), "(2, 3, 4)");
  assert.equal(await page.locator("#wrong-0").isVisible(), false);
  assert.equal(await page.locator("#shapes-out tbody tr.o0 th").innerText(), "x");
  await page.click("#add-operand");
  assert.equal(await page.evaluate(() => document.activeElement.id), "operand-2");
  await page.keyboard.type("mean:5,1,1,1");
  await eventually(() => result(page), "(5, 2, 3, 4)");
  await page.click('button[aria-label="Remove operand B"]');
  assert.equal(await page.locator("#operands li").count(), 2);
  await operands(page, ...Array.from({ length: 12 }, (_, at) => (at === 7 ? "6,1" : "5")));
  await eventually(() => result(page), "(6, 5)");
});

check("every spelling of the command is read", async (page) => {
  await open(page);
  const spellings = {
    "8,1,6,1": "(8, 1, 6, 1)", "(8, 1, 6, 1)": "(8, 1, 6, 1)", "[8,1,6,1]": "(8, 1, 6, 1)", "8x1x6x1": "(8, 1, 6, 1)", "8 1 6 1": "(8, 1, 6, 1)",
    "torch.Size([8, 1, 6, 1])": "(8, 1, 6, 1)", "()": "()", scalar: "()", "N,3,1": "(N, 3, 1)", BxCxHxW: "(B, C, H, W)", "b=32,c=3": "(32, 3)",
    "pred:32,1": "(32, 1)", "N@2..8,2": "(N, 2)", "?,2": "(?, 2)", "2..8,3": "(2..8, 3)", "...": "(...)",
  };
  for (const [text, shape] of Object.entries(spellings)) {
    await operands(page, text);
    await eventually(() => result(page), shape, text);
  }
});

check("an error shows the axis that clashes, and a click applies a fix", async (page) => {
  await open(page, "#/shapes?op=image:2,3,4&op=mask:2,4");
  assert.match(await verdict(page), /does not broadcast\s*E1\s*axis 1 \(-2\): image has 3, mask has 2/);
  assert.deepEqual(await page.locator("#shapes-out td.is-clash .chip > span:first-child").allInnerTexts(), ["≠ 3", "≠ 2"]);
  await page.click("text=mask[:, None, :] is (2, 1, 4)");
  assert.equal(await result(page), "(2, 3, 4)");
  assert.equal(await page.locator("#operand-1").inputValue(), "mask:2,1,4");
  assert.equal(await page.locator(".fixes-card").count(), 0);
});

check("a finding is explained, its fix applied, its code linked", async (page) => {
  await open(page, "#/shapes?op=pred:32,1&op=target:32");
  const finding = page.locator(".findings-card .finding").first();
  assert.match(await finding.innerText(), /SC102\s*a column meets a row of the same length/);
  await finding.locator(".fix").first().click();
  assert.equal(await result(page), "(32, 1)");
  await page.goBack().catch(() => {});
  await open(page, "#/shapes?op=pred:32,1&op=target:32&again");
  await page.locator(".findings-card a.badge").first().click();
  await page.waitForURL(`${SITE}docs/findings/SC102.html`);
  assert.match(await page.locator("h1").innerText(), /^SC102/);
});

check("rules are chosen from a menu, with their parameters", async (page) => {
  await open(page);
  const rules = await page.locator("#rule option").allInnerTexts();
  assert.equal(rules.length, 11);
  const choose = async (rule, shapes, wanted, fields = {}) => {
    await operands(page, ...shapes);
    await page.selectOption("#rule", rule);
    for (const [id, text] of Object.entries(fields)) await page.fill(id, text);
    await eventually(() => verdict(page), wanted, `${rule} ${shapes}`);
    assert.notEqual(await page.locator("#rule-summary").innerText(), "");
  };
  await choose("exact", ["2,3", "2,3"], /\(2, 3\)/);
  await choose("unidirectional", ["2,3", "3"], /\(2, 3\)/);
  await choose("pdpd", ["2,3,4", "3"], /does not broadcast/);
  await choose("pdpd", ["2,3,4", "3"], /broadcasts to\s*\(2, 3, 4\)/, { "#rule-axis": "1" });
  await choose("legacy", ["2,3,4", "3"], /\(2, 3, 4\)/, { "#rule-axis": "1" });
  await choose("paddle", ["2,3,4", "3,1"], /\(2, 3, 4\)/, { "#rule-axis": "1" });
  await choose("bidirectional", ["2,1"], /\(5, 2, 3\)/, { "#rule-shape": "5,1,3" });
  await choose("to", ["2,1"], /\(5, 2, 3\)/, { "#rule-shape": "5,2,3" });
  await choose("axes", ["2,4"], /\(2, 3, 4\)/, { "#rule-shape": "2,3,4", "#rule-axes": "1" });
  await choose("mapping", ["3"], /\(2, 3, 4\)/, { "#rule-shape": "2,3,4", "#rule-axes": "1" });
  await choose("named", ["h=2,w=3", "w=3,c=5"], /\(2, 3, 5\)/);
  // What is no parameter is said.
  await choose("to", ["2,1"], /not a request/, { "#rule-shape": "5,x!" });
});

check("symbols are bound by sliders, and constraints are said", async (page) => {
  await open(page, "#/shapes?op=x:N,3&op=y:4,M");
  await eventually(() => page.locator(".constraints-card").innerText(), /M is 1 or 3[\s\S]*N is 1 or 4/);
  const slider = page.locator('input[aria-label="Size of N"]');
  await slider.focus();
  await slider.fill("4");
  await eventually(() => page.locator("#shapes-out tr.o0 .own").innerText(), "(4, 3)");
  assert.equal(await page.locator('input[aria-label="Give N a size"]').isChecked(), true);
  await slider.press("ArrowRight");
  await eventually(() => verdict(page), /does not broadcast/);
  assert.match(page.url(), /set=N:5/);
  await page.locator('input[aria-label="Give N a size"]').uncheck();
  await eventually(() => page.locator("#shapes-out tr.o0 .own").innerText(), "(N, 3)");
  assert.doesNotMatch(page.url(), /set=/);
});

check("the two steps are stepped, played and still where motion is reduced", async (page) => {
  await open(page);
  const step = () => page.locator(".axes").first().getAttribute("data-step");
  assert.equal(await step(), "2");
  await page.click("text=1. as written");
  assert.equal(await step(), "0");
  const shift = await page.locator("#shapes-out tbody tr.o1 td").nth(1).evaluate((cell) => getComputedStyle(cell).getPropertyValue("--shift"));
  assert.notEqual(shift, "");
  await page.focus("text=2. align");
  await page.keyboard.press("Enter");
  assert.equal(await step(), "1");
  await page.click('button[aria-label="Play the two steps"]');
  assert.equal(await step(), "0");
  await eventually(step, "2");
  const moves = () => page.locator(".chip").first().evaluate((chip) => getComputedStyle(chip).transitionDuration);
  assert.notEqual(await moves(), "0s");
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal(await moves(), "0s");
});

check("pointing at a cell of the picture lights up what feeds it", async (page) => {
  await open(page, "#/shapes?op=3,1&op=4");
  const picture = page.locator(".cells-card .picture");
  const said = () => page.locator(".cells-card .said").innerText();
  const lit = () => picture.locator(".sc-lit").evaluateAll((cells) => cells.map((cell) => cell.dataset.z ?? `x${cell.dataset.x}`).sort().join(" "));
  await picture.locator('[data-z="2,3"]').first().hover();
  assert.equal(await said(), "result[2, 3] = A[2, 0], B[3]");
  assert.match(await lit(), /2,3 2,3/);
  // The sliders follow, and lead.
  assert.equal(await page.locator(".feeds").innerText(), "result[2, 3] = A[2, 0], B[3]");
  await page.locator('input[aria-label="Index along axis 1"]').fill("0");
  assert.equal(await said(), "result[2, 0] = A[2, 0], B[0]");
  await picture.locator('[data-x="0,0"]:not([data-z])').first().hover();
  assert.match(await said(), /A\[0, 0\] is shown in 4 cells/);
  await page.mouse.move(0, 0);
  assert.equal(await lit(), "");
  await page.locator(".feeds").click();
  await page.locator("input[type=range]").last().focus();
  await page.keyboard.press("Tab");
  for (const key of ["ArrowDown", "ArrowRight", "End"]) await page.keyboard.press(key);
  assert.match(await said(), /result\[\d, 3\] = /);
  await page.keyboard.press("Escape");
  assert.equal(await lit(), "");
});

check("of larger results two axes are drawn, with what feeds a cell", async (page) => {
  await open(page, "#/shapes?op=8,1,6,1&op=7,1,5");
  const said = () => page.locator(".cells-card .said").innerText();
  const whole = page.locator(".slice.whole [data-at]");
  assert.equal(await whole.count(), 30);
  await whole.first().hover();
  assert.equal(await said(), "result[4, 3, 0, 0] = A[4, 0, 0, 0], B[3, 0, 0]");
  assert.equal(await page.locator(".slices .is-lit").count(), 3);
  assert.equal(await page.locator(".feeds").innerText(), await said());
  await page.locator(".slice.o0 [data-at]").nth(2).hover();
  assert.equal(await said(), "A[4, 0, 2, 0] is shown in 35 cells of the result");
  assert.equal(await page.locator(".slice.whole .is-lit").count(), 5);
  await page.mouse.move(0, 0);
  await page.locator("input[type=range]").last().focus();
  await page.keyboard.press("Tab");
  for (const key of ["PageDown", "Home", "ArrowDown"]) await page.keyboard.press(key);
  assert.equal(await said(), "result[4, 4, 1, 0] = A[4, 0, 1, 0], B[4, 0, 0]");
  // Of long axes a window around the index.
  await operands(page, "9,5,1000,1", "9,1,1,2000");
  await eventually(() => page.locator(".slice.whole small").innerText(), /axis 2: \d+–\d+ of 1,000, axis 3: [\d,]+–[\d,]+ of 2,000/);
  assert.equal(await whole.count(), 80);
  await page.locator(".slices").focus();
  await page.keyboard.press("End");
  assert.match(await page.locator(".slice.whole small").innerText(), /1,990–1,999 of 2,000/);
});

check("everything can be taken along", async (page) => {
  await open(page, "#/shapes?op=x:N,1&op=y:3&rule=pdpd:0&set=N:3");
  const link = await copied(page, "Copy link");
  assert.equal(link, `${SITE}#/shapes?op=x:N,1&op=y:3&rule=pdpd:0&set=N:3`);
  const markdown = await copied(page, "Markdown");
  assert.ok(markdown.startsWith("```text\n  axis"), markdown);
  assert.ok(markdown.includes(`](${link})`), markdown);
  assert.match(await copied(page, "SVG"), /^<svg [\s\S]*<\/svg>\s*$/);
  assert.equal(await copied(page, "Python"), 'import simulcast\n\nprint(simulcast.explain("x:3,1", "y:3", rule="pdpd:0"))\n');
  assert.match(await copied(page, "Rust"), /\["x:N,1", "y:3"\][\s\S]*"pdpd:0"\.parse\(\)\?[\s\S]*request\.set\("N", 3\)\?;/);
  assert.equal(await copied(page, "Command"), "simulcast explain --rule pdpd:0 --set N=3 x:N,1 y:3");
  assert.equal(await page.locator("#toast").innerText(), "Command copied");
});

check("links lead to what they were taken of", async (page) => {
  const states = [
    { op: ["8,1,6,1", "7,1,5"] }, { op: ["größe:2,3", "y:?,3"] }, { op: ["b=2,c=3", "c=3,b=2"], rule: ["named"] },
    { op: ["2,4"], rule: ["axes:2,3,4/1"] }, { op: ["N@2..8,3", "..."], set: ["N:4"] }, { op: ["a & b #%"] }, { op: ["(8, 1)", "torch.Size([3])"] },
  ];
  for (const state of states) {
    const query = Object.entries(state).flatMap(([key, values]) => values.map((value) => `${key}=${encodeURIComponent(value)}`)).join("&");
    await open(page, `?${query.length}#/shapes?${query}`);
    const seen = () => page.evaluate(() => [...document.querySelectorAll("#operands input")].map((input) => input.value).concat(document.querySelector("#shapes-status").innerText));
    const first = await seen();
    assert.deepEqual(first.slice(0, -1), state.op);
    const address = page.url();
    await page.goto("about:blank");
    await page.goto(address);
    await page.waitForSelector("html[data-ready]");
    assert.deepEqual(await seen(), first);
    assert.equal(page.url(), address);
  }
  // A link that is followed on the page that is open.
  await page.evaluate(() => { location.hash = "#/shapes?op=2,3&op=3"; });
  await eventually(() => result(page), "(2, 3)");
  // And one of somebody who means harm.
  await page.evaluate(() => { location.hash = `#/shapes?${"op=2&".repeat(500)}op=%3Cimg%20src=x%20onerror=alert(1)%3E&set=__proto__:3&rule=%00`; });
  await eventually(() => page.locator("#operands li").count(), 64);
});

check("shapes of very many axes do not stop the page", async (page) => {
  await open(page);
  await operands(page, "1,".repeat(5000), "2,3");
  await eventually(() => page.locator("#shapes-out").innerText(), /5,000 axes are too many for a table/);
  await operands(page, `${"2,".repeat(3000)}5`, `${"2,".repeat(3000)}4`);
  await eventually(() => verdict(page), /does not broadcast/);
});

check("what a view shows stays while another is looked at", async (page) => {
  await open(page, "#/shapes?op=2,3,4&op=3&rule=pdpd:1");
  await page.locator("#tab-shapes").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("#view-error").isVisible(), true);
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-error");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await result(page), "(2, 3, 4)");
  assert.equal(await page.locator("#rule").inputValue(), "pdpd");
});
