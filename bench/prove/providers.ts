/**
 * Proves that outgoing mail obeys: `bun bench/prove/providers.ts [--mails=150] [--minutes=85]`. Plays eight providers against
 * mail of three projects, on a clock that moves only while the process waits for it, and prints what each provider saw. The
 * figures are minutes and seconds of that clock, so the machine and its load change none. "In time" is the time of a sender that obeys, a quarter more, and three minutes.
 */
import { MINUTE_MS, SECOND_MS } from "../../src/core/time/units.ts";
import { startService, verifiedDomain } from "../../test/support/service.ts";
import "../support/end-on-signal.ts";
import { printMarkdown } from "../support/inbound-table.ts";
import { idleClock } from "./support/idle-clock.ts";
import { PLAYED, type PlayedProvider } from "./support/provider-behaviours.ts";
import { type Peer, startPeer } from "./support/provider-peer.ts";
import { steadyPort } from "./support/service.ts";
import { atLeast, atMost, conclude, fact, numberOption } from "./support/table.ts";

/** Messages to each provider: the second project has a tenth, the third one foreign message, and the first the rest. */
const MAILS = numberOption("mails", 150);
const MINUTES = numberOption("minutes", 85);
const SHARE_OF_SECOND = 0.1;
/** Time that an obedient sender may take beyond the best. */
const MARGIN = 1.25;
const GRACE_MS = 3 * MINUTE_MS;
const BATCH = 100;
const POLL_MS = 250;

const clock = idleClock();
const port = steadyPort();
const UNLIMITED = { PLAN_FREE: "unlimited", TIER_NEW: "unlimited", TIER_BASIC: "unlimited" };
const service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(port), ...UNLIMITED }, clock);
const wide = { key: service.accountKey };
const startedAt = clock.now();

function play(provider: PlayedProvider, nth: number): Peer {
  const ips = provider.hosts.map((_, at) => `127.0.${at + 1}.${nth + 1}`);
  for (const domain of provider.domains)
    for (const [at, exchange] of provider.hosts.entries()) {
      // Each customer of Microsoft 365 has its own host.
      const name =
        provider.domains.length > 1 ? domain.replace(".test", `-test.${exchange.slice(9)}`) : exchange;
      service.dns.add({ name, type: "A", data: ips[at] ?? "" });
      service.dns.add({ name: domain, type: "MX", data: { preference: 10 * at, exchange: name } });
    }
  return startPeer(clock, ips, port, provider.behave(startedAt));
}

async function newProject(name: string): Promise<string> {
  const { body: sender } = await service.call("POST", "/v1/senders", { name }, wide);
  const { body } = await service.call("POST", "/v1/api-keys", { name, senderId: sender.id }, wide);
  await verifiedDomain(service, `${name}.sender.test`, body.secret ?? body.key);
  return body.secret ?? body.key;
}

async function send(key: string, project: string, addresses: readonly string[]): Promise<void> {
  for (let from = 0; from < addresses.length; from += BATCH) {
    const emails = addresses.slice(from, from + BATCH).map((email) => ({
      from: { email: `news@${project}.sender.test` },
      to: [{ email }],
      subject: "Hi",
      text: "Hi\n",
    }));
    const { status, body } = await service.call("POST", "/v1/emails/batch", { emails }, { key });
    const isAccepted = body.data?.every(({ id }: { id?: string }) => id !== undefined) === true;
    if (status >= 300 || !isAccepted) throw new Error(`${status}: ${JSON.stringify(body).slice(0, 300)}`);
  }
}

const addresses = ({ domains }: PlayedProvider, project: string, count: number) =>
  Array.from({ length: count }, (_, nth) => `${project}${nth}@${domains[nth % domains.length]}`);

const peers = PLAYED.map(play);
const keys = new Map<string, string>();
for (const project of ["large", "small", "foreign"]) keys.set(project, await newProject(project));
const small = Math.round(MAILS * SHARE_OF_SECOND);
const shares: readonly [string, number][] = [
  ["large", MAILS - small - 1],
  ["small", small],
  ["foreign", 1],
];
let foreignAt = 0;
for (const [project, count] of shares) {
  foreignAt = clock.now();
  await send(
    keys.get(project) ?? "",
    project,
    PLAYED.flatMap((provider) => addresses(provider, project, count)),
  );
}
const sentAt = clock.now();

const total = () => peers.reduce((sum, { counts }) => sum + counts.taken.size, 0);
while (clock.now() < startedAt + MINUTES * MINUTE_MS && total() < MAILS * PLAYED.length)
  await Bun.sleep(POLL_MS);

const rows = PLAYED.map((provider, nth) => {
  const counts = peers[nth]?.counts ?? {
    sessions: 0,
    transactions: 0,
    refused: 0,
    refusedAfterData: 0,
    taken: new Map(),
  };
  const until = sentAt + provider.bestMs(MAILS) * MARGIN + GRACE_MS;
  const inTime = [...counts.taken.values()].filter((at) => at <= until).length;
  const foreign = counts.taken.get(addresses(provider, "foreign", 1)[0] ?? "");
  return { provider, counts, inTime, foreignMs: foreign === undefined ? Number.NaN : foreign - foreignAt };
});
printMarkdown(
  [
    "provider",
    "delivered",
    "in time",
    "transactions",
    "refused",
    "after DATA",
    "sessions",
    "foreign message",
  ],
  rows.map(({ provider, counts, inTime, foreignMs }) => [
    provider.name,
    `${counts.taken.size} of ${MAILS}`,
    `${Math.round((100 * inTime) / MAILS)} %`,
    String(counts.transactions),
    String(counts.refused),
    String(counts.refusedAfterData),
    String(counts.sessions),
    Number.isNaN(foreignMs) ? "never" : `${Math.round(foreignMs / SECOND_MS)} s`,
  ]),
);
const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
const transactions = sum(({ counts }) => counts.transactions);
await service.stop();
clock.stop();
for (const peer of peers) peer.stop();
conclude("Outgoing mail obeys", [
  fact("transactions", transactions),
  fact(
    "sessions",
    sum(({ counts }) => counts.sessions),
  ),
  fact(
    "refused",
    sum(({ counts }) => counts.refused),
  ),
  fact(
    "slowest foreign message, s",
    Math.round(Math.max(...rows.map(({ foreignMs }) => foreignMs)) / SECOND_MS),
  ),
  atLeast("delivered in time", (100 * sum(({ inTime }) => inTime)) / (MAILS * PLAYED.length), 95, " %"),
  atMost("refused after DATA", (100 * sum(({ counts }) => counts.refusedAfterData)) / transactions, 2, " %"),
]);
