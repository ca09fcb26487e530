import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

/** 310 real bounces with labels by another project, not part of this repository. */
const CORPUS = join(import.meta.dir, "../../../../../shared/corpora/sisimai-bounces");

/**
 * Labels that the labels' own flag calls soft and our rules call hard. `filtered` messages say "user unknown" to a
 * command other than RCPT; `suspend` is a disabled mailbox (RFC 3463 X.2.1).
 */
const HARD_BY_OUR_RULES: ReadonlySet<string> = new Set(["filtered", "suspend"]);
/** Reports that are not failures. */
const NO_FAILURE: ReadonlySet<string> = new Set(["delivered", "vacation", "feedback"]);

interface Label {
  recipient?: string;
  reason: string;
  hardbounce: boolean | number;
}

/** Words by which a notice itself calls the address unknown, whatever its label says. */
const SAYS_UNKNOWN = /unknown user|user unknown/i;
/** Healthy addresses that would be suppressed for good. */
const MAX_SUPPRESSED = 1;

/** Ways to use the labels: which ones count, and which of those are hard. */
const READINGS: readonly {
  name: string;
  counts(label: Label): boolean;
  isHard(label: Label): boolean;
  atLeast: number;
}[] = [
  {
    name: "the labels' flag, with filtered and suspended ones by our rules",
    counts: () => true,
    isHard: ({ reason, hardbounce }) => Boolean(hardbounce) || HARD_BY_OUR_RULES.has(reason),
    atLeast: 0.96,
  },
  {
    name: "the labels' flag, without filtered and suspended ones",
    counts: ({ reason }) => !HARD_BY_OUR_RULES.has(reason),
    isHard: ({ hardbounce }) => Boolean(hardbounce),
    atLeast: 0.96,
  },
  {
    // 35 of 308 are hard by our rules and not by the flag.
    name: "the labels' flag, everywhere",
    counts: () => true,
    isHard: ({ hardbounce }) => Boolean(hardbounce),
    atLeast: 0.85,
  },
];

function labelsOf(file: string): Record<string, Label[]> {
  return JSON.parse(readFileSync(join(CORPUS, file), "utf8"));
}

async function readFile(path: string) {
  const raw = readFileSync(path);
  const mail = await parseMail(raw);
  return { bounce: readBounce(mail, raw), feedback: readFeedback(mail) };
}

test.skipIf(!existsSync(CORPUS))(
  "real bounces are read (skipped if the folder shared/corpora/sisimai-bounces is absent)",
  async () => {
    const labels = labelsOf("labels.json");
    const decoded = labelsOf("decoded.json");
    const confusion = new Map<string, number>();
    const suppressed: string[] = [];
    let recipients = 0;
    let recipientsFound = 0;
    const scores = READINGS.map((reading) => ({ ...reading, judged: 0, right: 0 }));
    for (const file of readdirSync(join(CORPUS, "bsd")).sort()) {
      const named = decoded[file] ?? [];
      const judgedBy = labels[file]?.length === named.length ? (labels[file] ?? []) : named;
      const { bounce, feedback } = await readFile(join(CORPUS, "bsd", file));
      for (const [at, { recipient }] of named.entries()) {
        const label = judgedBy[at];
        const reason = label?.reason ?? "";
        const found = bounce?.recipients.find((candidate) =>
          matches(recipient, [candidate.recipient, candidate.finalRecipient]),
        );
        if (reason === "vacation") expect(bounce).toBeNull();
        // A complaint names its recipient only in the return path.
        if (reason !== "delivered" && reason !== "vacation" && feedback === null) {
          recipients++;
          if (found !== undefined) recipientsFound++;
        }
        if (label === undefined || NO_FAILURE.has(reason)) continue;
        const read = found ?? bounce?.recipients[at] ?? bounce?.recipients[0];
        const outcome = read?.outcome ?? "none";
        const isHealthy = !label.hardbounce && !HARD_BY_OUR_RULES.has(reason);
        if (outcome === "hard" && isHealthy && !SAYS_UNKNOWN.test(read?.diagnosticCode ?? ""))
          suppressed.push(`${file}: ${reason}`);
        for (const score of scores) {
          if (!score.counts(label)) continue;
          score.judged++;
          if ((outcome === "hard") === score.isHard(label) && bounce !== null) score.right++;
        }
        confusion.set(`${reason} → ${outcome}`, (confusion.get(`${reason} → ${outcome}`) ?? 0) + 1);
      }
    }
    const table = [...confusion].sort().map(([row, count]) => `${String(count).padStart(4)}  ${row}`);
    table.push(`recipients found: ${recipientsFound} of ${recipients}`);
    for (const { name, judged, right } of scores) table.push(`hard or not, ${name}: ${right} of ${judged}`);
    table.push(`healthy addresses suppressed: ${suppressed.length} (${suppressed.join(", ")})`);
    process.stdout.write(`${table.join("\n")}\n`);
    expect(recipientsFound / recipients).toBeGreaterThanOrEqual(0.97);
    expect(suppressed.length).toBeLessThanOrEqual(MAX_SUPPRESSED);
    expect(scores.filter(({ judged, right, atLeast }) => right / judged < atLeast)).toEqual([]);
  },
);

test.skipIf(!existsSync(CORPUS))(
  "messages that are not bounces are recognised as such (skipped if the folder shared/corpora/sisimai-bounces is absent)",
  async () => {
    for (const file of readdirSync(join(CORPUS, "not"))) {
      expect({ file, ...(await readFile(join(CORPUS, "not", file))) }).toEqual({
        file,
        bounce: null,
        feedback: null,
      });
    }
  },
);

function matches(wanted: string | undefined, found: readonly (string | null | undefined)[]): boolean {
  return wanted !== undefined && found.some((address) => address?.toLowerCase() === wanted.toLowerCase());
}
