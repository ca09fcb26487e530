import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readFeedback } from "../../src/mail/arf.ts";
import { readBounce } from "../../src/mail/dsn.ts";
import { parseMail } from "../../src/mail/parse.ts";

/** 310 real bounces with labels by others; not part of this repository. */
const CORPUS = join(import.meta.dir, "../../../shared/corpora/sisimai-bounces");

/**
 * Labels that name a mailbox or domain which takes no mail. `filtered` mails say "user unknown" in other than a RCPT
 * reply, `suspend` is a disabled mailbox: both are hard by our rules, whatever the labels' own notion of hard.
 */
const HARD: ReadonlySet<string> = new Set([
  "userunknown",
  "hostunknown",
  "hasmoved",
  "suspend",
  "filtered",
  "notaccept",
]);
/** Reports that are no failure. */
const NO_FAILURE: ReadonlySet<string> = new Set(["delivered", "vacation", "feedback"]);

interface Label {
  recipient?: string;
  reason: string;
}

function labelsOf(file: string): Record<string, Label[]> {
  return JSON.parse(readFileSync(join(CORPUS, file), "utf8"));
}

async function read(path: string) {
  const raw = readFileSync(path);
  const mail = await parseMail(raw);
  return { bounce: readBounce(mail, raw), feedback: readFeedback(mail) };
}

test.skipIf(!existsSync(CORPUS))(
  "real bounces are read (skipped where the folder shared/corpora/sisimai-bounces is absent)",
  async () => {
    const labels = labelsOf("labels.json");
    const decoded = labelsOf("decoded.json");
    const confusion = new Map<string, number>();
    let recipients = 0;
    let recipientsFound = 0;
    let judged = 0;
    let right = 0;
    for (const file of readdirSync(join(CORPUS, "bsd")).sort()) {
      const named = decoded[file] ?? [];
      const judgedBy = labels[file]?.length === named.length ? (labels[file] ?? []) : named;
      const { bounce, feedback } = await read(join(CORPUS, "bsd", file));
      for (const [at, { recipient }] of named.entries()) {
        const reason = judgedBy[at]?.reason ?? "";
        const found = bounce?.recipients.find((candidate) =>
          matches(recipient, [candidate.recipient, candidate.finalRecipient]),
        );
        if (reason === "vacation") expect(bounce).toBeNull();
        if (reason !== "delivered" && reason !== "vacation") {
          recipients++;
          if (found !== undefined || matches(recipient, [feedback?.originalRecipient])) recipientsFound++;
        }
        if (NO_FAILURE.has(reason)) continue;
        const outcome = (found ?? bounce?.recipients[at] ?? bounce?.recipients[0])?.outcome ?? "none";
        judged++;
        if ((outcome === "hard") === HARD.has(reason) && bounce !== null) right++;
        confusion.set(`${reason} → ${outcome}`, (confusion.get(`${reason} → ${outcome}`) ?? 0) + 1);
      }
    }
    const table = [...confusion].sort().map(([row, count]) => `${String(count).padStart(4)}  ${row}`);
    process.stdout.write(
      `${table.join("\n")}\nrecipients found ${recipientsFound}/${recipients}, hard or not ${right}/${judged}\n`,
    );
    expect(recipientsFound / recipients).toBeGreaterThanOrEqual(0.9);
    expect(right / judged).toBeGreaterThanOrEqual(0.92);
  },
);

test.skipIf(!existsSync(CORPUS))(
  "mails that are no bounces are taken for none (skipped where the folder shared/corpora/sisimai-bounces is absent)",
  async () => {
    for (const file of readdirSync(join(CORPUS, "not"))) {
      expect({ file, ...(await read(join(CORPUS, "not", file))) }).toEqual({
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
