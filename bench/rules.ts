/**
 * Measures how long 200 rules take for each message of a folder: `bun bench/rules.ts FOLDER`. They run on the thread that takes all
 * mail. The time of a message is the best of several batches, because others may use the machine. The next row is
 * the time that reading its header takes.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkRules, readyRules } from "../src/core/rules/match.ts";
import {
  type AskedRule,
  MAX_COMPARED_ADDRESSES,
  MAX_COMPARED_CHARS,
  MAX_PATTERN_CHARS,
  MAX_RULES,
  type RuleMail,
  type RuleWhen,
} from "../src/core/rules/rule.ts";
import { rulingOf } from "../src/core/rules/ruling.ts";
import { headerOnly, parseMail } from "../src/mail/reading/parse.ts";
import { fieldsByName } from "../src/mail/reading/shown-headers.ts";
import { quantile } from "./prove/support/table.ts";
import { printMarkdown } from "./support/inbound-table.ts";

const BATCHES = 9;
const RUNS = 20;
const WARM_MESSAGES = 100;
const NANOS_PER_MICRO = 1000;

/** Conditions as people write them. Few messages meet one, so nearly all count. */
const KINDS: readonly ((nth: number) => RuleWhen)[] = [
  (nth) => ({ from: `*@customer${nth}.example` }),
  (nth) => ({ subject: `order ${nth}` }),
  (nth) => ({ to: `team${nth}@` }),
  (nth) => ({
    header: { name: ["List-Id", "X-Mailer", "Received", "Precedence"][nth % 4] ?? "", value: `n${nth}` },
  }),
  (nth) => ({ hasAttachment: true, subject: `invoice ${nth}` }),
  (nth) => ({ largerThan: nth * 1000, from: `person${nth}@` }),
  (nth) => ({ auth: "pass", trust: "known", subject: `hello ${nth}` }),
  (nth) => ({ spamScoreAbove: nth }),
];

function rulesOf(when: (nth: number) => RuleWhen): AskedRule[] {
  return Array.from({ length: MAX_RULES }, (_, nth) => ({
    id: `rul_${nth}`,
    name: `Rule ${nth}`,
    inboxId: null,
    when: when(nth),
    then: { labels: [`l${nth}`] },
  }));
}

/** Returns the best mean time of one run, µs. */
function timed(run: () => unknown): number {
  let best = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < BATCHES; batch++) {
    const from = Bun.nanoseconds();
    for (let nth = 0; nth < RUNS; nth++) run();
    best = Math.min(best, (Bun.nanoseconds() - from) / RUNS);
  }
  return best / NANOS_PER_MICRO;
}

async function mailOf(raw: Uint8Array): Promise<RuleMail> {
  const mail = await parseMail(raw);
  const headers = Object.entries(fieldsByName(mail.fields)).map(([name, value]) => [
    name.toLowerCase(),
    value,
  ]);
  return {
    from: mail.from?.email ?? "",
    to: [...mail.to, ...mail.cc].map(({ email }) => email),
    subject: mail.subject,
    headers: Object.fromEntries(headers.filter(([name = ""]) => mixed.headers.includes(name))),
    hasAttachment: mail.attachments.length > 0,
    size: raw.length,
    authenticated: true,
    trust: "authenticated",
    spamScore: 1,
    mailFrom: "bench@example.com",
    isSpam: false,
    inboxAddress: "box@example.com",
    receivedFields: 1,
  };
}

const [folder] = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));
if (folder === undefined)
  throw new Error("usage: bun bench/rules.ts FOLDER, with messages in files that end in .eml");
const files = readdirSync(folder, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith(".eml"));
const messages = files.map((name) => new Uint8Array(readFileSync(join(folder, name))));
const mixed = readyRules(rulesOf((nth) => KINDS[nth % KINDS.length]?.(nth) ?? {}));
const ask = (mail: RuleMail) => rulingOf(checkRules(mixed, null, mail), mail);

const mails = await Promise.all(messages.map(mailOf));
for (const mail of mails.slice(0, WARM_MESSAGES)) timed(() => ask(mail));
const rules = mails.map((mail) => timed(() => ask(mail)));
const reading = messages.map((raw) => timed(() => headerOnly(raw)));

const letters = "é".repeat(MAX_COMPARED_CHARS);
const largest: RuleMail = {
  ...(await mailOf(new Uint8Array())),
  subject: letters,
  to: Array<string>(MAX_COMPARED_ADDRESSES).fill(`${"a".repeat(240)}@example.com`),
};
const hardest = readyRules(rulesOf((nth) => ({ to: `${"a".repeat(MAX_PATTERN_CHARS - 3)}${nth}` })));
const worst = timed(() => checkRules(hardest, null, largest));

const row = (name: string, times: readonly number[]) => [
  name,
  String(times.length),
  ...[0.5, 0.99, 1].map((share) => quantile(times, share).toFixed(1)),
];
printMarkdown(
  ["µs", "messages", "p50", "p99", "most"],
  [
    row(`${MAX_RULES} rules`, rules),
    row("reading the header", reading),
    row(`${MAX_RULES} rules that compare long words with ${MAX_COMPARED_ADDRESSES} recipients`, [worst]),
  ],
);
