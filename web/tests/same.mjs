import assert from "node:assert/strict";
import fs from "node:fs";
import { check, engine, open } from "./support.mjs";

check("random requests are answered as the command answers them", async (page) => {
  await open(page);
  await engine(page);
  const lines = fs.readFileSync(process.env.WEB_REQUESTS, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  const counts = { explained: 0, errors: 0, usage: 0 };
  for (let from = 0; from < lines.length; from += 1000) {
    const part = lines.slice(from, from + 1000);
    const answers = await page.evaluate((requests) => requests.map(({ rule, shapes, sizes }) => {
      const answer = ask({ do: "explain", rule, shapes, sizes });
      return answer.explanation ? { explanation: answer.explanation } : answer;
    }), part);
    part.forEach(({ code, out, err, ...request }, at) => {
      const answer = answers[at];
      if (code === 2) {
        counts.usage += 1;
        assert.equal(typeof answer.usage, "string", `${JSON.stringify(request)}: ${JSON.stringify(answer)}, not ${err}`);
        assert.ok(err.includes(answer.usage), `${JSON.stringify(request)}: ${answer.usage}, not ${err}`);
      } else {
        counts[code === 0 ? "explained" : "errors"] += 1;
        assert.deepEqual(answer.explanation, JSON.parse(out), JSON.stringify(request));
      }
    });
  }
  console.log(`   ${JSON.stringify(counts)}`);
  for (const [what, count] of Object.entries(counts)) assert.ok(count > lines.length / 20, `${what}: ${count}`);
});
