/**
 * Scores 31 kinds of message, as they leave, by SpamAssassin and rspamd, and prints a table. Ends with 1 if a rule of
 * more than half a point is ours. Needs both programs: apt-get install spamassassin rspamd
 * Usage: bun run lint:mail
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publish } from "../test/support/dns.ts";
import { startMx } from "../test/support/mx.ts";
import { freePort } from "../test/support/redis.ts";
import { startService, verifiedDomain } from "../test/support/service.ts";
import { CLIENT, type Letter, type Rules, spamAssassin, startRspamd } from "./lint-mail/filters.ts";
import { KINDS, type Kind } from "./lint-mail/kinds.ts";

const ZONE = "post.example.net";
const FROM = "example.org";
const NONE = { opens: false, clicks: false };
/** Points beyond which a rule must be of the sender's choice. */
const MOST_POINTS = 0.5;

for (const program of ["spamassassin", "rspamd"])
  if (Bun.which(program) === null) {
    console.error(`${program} is missing. Install both: apt-get install spamassassin rspamd`);
    process.exit(2);
  }

/** Sends each kind through a started service, and returns what left. */
async function lettersOf(folder: string): Promise<{ letters: Letter[]; scores: Rules[] }> {
  const relay = startMx();
  const service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    SERVICE_DOMAIN: ZONE,
    PUBLIC_URL: `https://links.${FROM}`,
    PUBLIC_IPS: CLIENT.ip,
  });
  try {
    const { dns } = service;
    const spf = `v=spf1 ip4:${CLIENT.ip} ~all`;
    dns.add(
      { name: `spf.${ZONE}`, type: "TXT", data: spf },
      { name: `bounce.${ZONE}`, type: "TXT", data: spf },
      { name: `bounce.${ZONE}`, type: "MX", data: { preference: 10, exchange: `mx.${ZONE}` } },
      { name: CLIENT.helo, type: "A", data: CLIENT.ip },
      { name: FROM, type: "A", data: CLIENT.ip },
      { name: FROM, type: "MX", data: { preference: 10, exchange: `mx.${FROM}` } },
      { name: `mx.${FROM}`, type: "A", data: CLIENT.ip },
      { name: "5.112.0.203.in-addr.arpa", type: "PTR", data: CLIENT.helo },
    );
    const id = await verifiedDomain(service, FROM);
    const keys = await service.app.db.all<{ token: string; key: string }>(
      "SELECT token, public_key AS key FROM dkim_keys WHERE domain_id IS NOT NULL",
    );
    for (const { token, key } of keys) {
      const [head, tail] = [`v=DKIM1; k=rsa; p=${key.slice(0, 200)}`, key.slice(200)];
      dns.add({ name: `${token}.dkim.${ZONE}`, type: "TXT", data: [head, tail] });
    }
    const { body } = await service.call("GET", `/v1/domains/${id}`);
    publish(dns, body.recommended ?? []);
    await service.call("POST", `/v1/domains/${id}/verify`);
    const letters: Letter[] = [];
    for (const { item } of KINDS) {
      const mail = {
        from: `Ben of Example <ben@${FROM}>`,
        to: ["Ana Lee <ana@example.com>"],
        tracking: NONE,
        ...item,
      };
      const answer = await service.call("POST", "/v1/emails", mail);
      if (answer.status !== 202) throw new Error(JSON.stringify(answer.body));
      await service.message(answer.body.id, "sent");
      const sent = relay.messages.items.at(-1);
      if (sent === undefined) throw new Error("nothing left");
      letters.push({ raw: sent.data, mailFrom: sent.mailFrom, rcptTo: sent.rcptTo[0] ?? "" });
    }
    const rspamd = await startRspamd(folder, freePort(), dns);
    try {
      const scores: Rules[] = [];
      for (const letter of letters) scores.push(await rspamd.score(letter));
      return { letters, scores };
    } finally {
      await rspamd.stop();
    }
  } finally {
    await service.stop();
    relay.stop();
  }
}

const sum = (rules: Rules): string =>
  Object.values(rules)
    .reduce((total, points) => total + points, 0)
    .toFixed(1);

/** Returns the rules of more than the limit: ours, and those of the sender's choice. */
function rulesOf({ chosen = [] }: Kind, rules: Rules): { ours: string[]; theirs: string[] } {
  const high = Object.entries(rules).filter(([, points]) => points > MOST_POINTS);
  const isChosen = (name: string): boolean => chosen.some((start) => name.startsWith(start));
  const shown = (some: typeof high): string[] => some.map(([name, points]) => `${name} ${points.toFixed(1)}`);
  return {
    ours: shown(high.filter(([name]) => !isChosen(name))),
    theirs: shown(high.filter(([name]) => isChosen(name))),
  };
}

const folder = mkdtempSync(join(tmpdir(), "lint-mail-"));
const { letters, scores } = await lettersOf(folder);
const assassin = await spamAssassin(folder, letters);
let count = 0;
console.log(`| message | SpamAssassin | rspamd | ours above ${MOST_POINTS} | of the sender's choice |`);
console.log("|---|---:|---:|---|---|");
for (const [at, kind] of KINDS.entries()) {
  const [one, other] = [assassin[at] ?? {}, scores[at] ?? {}];
  const { ours, theirs } = rulesOf(kind, { ...one, ...other });
  count += ours.length;
  console.log(`| ${kind.name} | ${sum(one)} | ${sum(other)} | ${ours.join(", ")} | ${theirs.join(", ")} |`);
}
rmSync(folder, { recursive: true, force: true });
process.exit(count === 0 ? 0 : 1);
