/**
 * Measures messages received per second over SMTP, and memory for large ones: `bun bench/inbound.ts [--signed]
 * [--processes=N] [--sessions=N] [--profile=FOLDER] [--only=NAME] [--rounds=N] [--json=FILE]`.
 */
import { loadavg } from "node:os";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { type LargeRow, largeFigures, measureLarge, printLarge } from "./support/inbound-large.ts";
import { type MailFlags, openSender, send } from "./support/inbound-mail.ts";
import {
  type Comparison,
  comparisonFigures,
  type InboundRow,
  printComparisons,
} from "./support/inbound-table.ts";
import {
  bareListener,
  type Kind,
  postfixChecking,
  postfixHold,
  service,
  smtpServers,
  subscribed,
} from "./support/inbound-targets.ts";
import { chosen, numberOption, rounds } from "./support/options.ts";
import { prepareData } from "./support/service.ts";

/** With 20, each server waits for its senders. Ours takes more with more of them, Postfix does not. */
const SESSIONS = numberOption("sessions", 20);
const OCTETS = 4096;
/** Unmeasured messages first: compiling takes up to a fifth of the processor time of the first twenty thousand. */
const WARM_MAILS = 24_000;
/** Unmeasured messages before the large ones, whose memory is measured. */
const WARM_SMALL_MAILS = 500;
const MAILS = 6000;
const LARGE_SENDERS = 8;
const LARGE_OCTETS = 25_000_000;
const WAYS = [
  ["a session a mail", false],
  ["sessions kept", true],
] as const;
const LARGE = [
  ["25 MB, attachment", "attachment"],
  ["25 MB, text", "text"],
] as const;
/** The goal of our rate as a multiple of each peer's rate, by the peer's name: a session per message, and kept ones. */
const GOALS: ReadonlyMap<string, readonly [number, number]> = new Map([
  ["bare listener, group commit", [0.5, 0.5]],
  ["Postfix, hold queue", [1.3, 1.2]],
  ["Postfix with SPF, OpenDKIM and OpenDMARC", [10, 10]],
]);

const home = benchFolder();
const prepared = await subscribed(await prepareData(home));
const signed = process.argv.includes("--signed");
const sender = await openSender(home, prepared.inbox, signed);
const processes = numberOption("processes", 1);
const subject = service(prepared, sender.dns.address, { signed, processes });
const others = [bareListener(home), ...postfixHold(), ...postfixChecking(home, sender.records)];
// smtp-server greets after 100 ms to find early talkers, which would be all that a session per message shows.
const othersKept = smtpServers(home);

/** Adds one round to a row. */
async function measure(row: InboundRow, [name, start]: Kind, kept: boolean, flags: MailFlags): Promise<void> {
  const target = await start();
  const { share = 1 } = target;
  const [warm, mails] = [WARM_MAILS * share, MAILS * share];
  const load = { port: target.port, sessions: SESSIONS, kept, mail: flags };
  await send(home, { ...load, mails: warm });
  const before = target.processor();
  const seconds = await send(home, { ...load, mails });
  row.rates.push(mails / seconds);
  row.processor.push((target.processor() - before) / mails);
  row.load.push(loadavg()[0] ?? 0);
  const taken = await target.end();
  if (taken !== warm + mails) throw new Error(`${name} has taken ${taken} mails`);
}

async function compare(way: string, kept: boolean, flags: MailFlags): Promise<Comparison> {
  const kinds = chosen([subject, ...others, ...(kept ? othersKept : [])]);
  const rows = kinds.map(
    ([name]): InboundRow => ({
      name: `${name}, ${way}`,
      rates: [],
      processor: [],
      load: [],
      goal: GOALS.get(name)?.[Number(kept)] ?? null,
    }),
  );
  for (let round = 0; round < rounds(); round++)
    for (const [at, row] of rows.entries()) {
      const kind = kinds[at];
      if (kind !== undefined) await measure(row, kind, kept, flags);
    }
  const at = kinds.indexOf(subject);
  return { subject: rows[at] ?? null, others: rows.filter((_, other) => other !== at) };
}

const small = await sender.mail("text", OCTETS);
const comparisons: Comparison[] = [];
for (const [way, kept] of WAYS) comparisons.push(await compare(way, kept, small));
printComparisons(comparisons);
const large: LargeRow[] = [];
for (const [name, body] of chosen(LARGE)) {
  const load = {
    name: `${LARGE_SENDERS} at once of ${name}`,
    warm: { sessions: SESSIONS, mails: WARM_SMALL_MAILS, kept: true, mail: small },
    large: {
      sessions: LARGE_SENDERS,
      mails: LARGE_SENDERS,
      kept: false,
      mail: await sender.mail(body, LARGE_OCTETS),
    },
    octets: LARGE_OCTETS,
  };
  large.push(await measureLarge(home, subject, load, rounds()));
}
printLarge(large);
handOver({ ...comparisonFigures(comparisons), ...largeFigures(large) });
sender.dns.stop();
