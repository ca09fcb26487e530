/**
 * Scores 31 kinds of message, as they leave, by SpamAssassin and rspamd, and prints a table. Ends with 1 if a rule of
 * more than half a point is ours. Needs both programs: apt-get install spamassassin rspamd
 * Usage: npm run lint:mail
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FILTERS, highRules, MOST_POINTS, scoredKinds, sumOf } from "../test/support/scored-mail.ts";

for (const program of FILTERS)
  if (Bun.which(program) === null) {
    console.error(`${program} is missing. Install both: apt-get install ${FILTERS.join(" ")}`);
    process.exit(2);
  }

const folder = mkdtempSync(join(tmpdir(), "lint-mail-"));
let count = 0;
console.log(`| message | SpamAssassin | rspamd | ours above ${MOST_POINTS} | of the sender's choice |`);
console.log("|---|---:|---:|---|---|");
for (const scored of await scoredKinds(folder)) {
  const { kind, assassin, rspamd } = scored;
  const { ours, theirs } = highRules(scored);
  count += ours.length;
  const points = [assassin, rspamd].map((rules) => sumOf(rules).toFixed(1));
  console.log(`| ${[kind.name, ...points, ours.join(", "), theirs.join(", ")].join(" | ")} |`);
}
rmSync(folder, { recursive: true, force: true });
process.exit(count === 0 ? 0 : 1);
