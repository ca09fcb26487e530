// Sends each kind of message through a started service, and scores what leaves by SpamAssassin and rspamd.
import { publish } from "./dns.ts";
import { startMx } from "./mx.ts";
import { freePort } from "./redis.ts";
import { startService, verifiedDomain } from "./service.ts";

import { CLIENT, type Letter, type Rules, spamAssassin, startRspamd } from "./peers/spam-filters.ts";
import { KINDS, type Kind } from "./scored-kinds.ts";

/** The programs that score, by Debian's names. */
export const FILTERS = ["spamassassin", "rspamd"] as const;
/** Points beyond which a rule must be of the sender's choice. */
export const MOST_POINTS = 0.5;

/** A kind of message with the rules that each filter applied to it. */
export interface Scored {
  kind: Kind;
  assassin: Rules;
  rspamd: Rules;
}

/** Scores all kinds. @param folder for files of the filters */
export async function scoredKinds(folder: string): Promise<Scored[]> {
  const { letters, scores } = await lettersOf(folder);
  const assassin = await spamAssassin(folder, letters);
  return KINDS.map((kind, at) => ({ kind, assassin: assassin[at] ?? {}, rspamd: scores[at] ?? {} }));
}

/** Returns the points of all rules together. */
export function sumOf(rules: Rules): number {
  return Object.values(rules).reduce((total, points) => total + points, 0);
}

/** Returns the rules of more than the limit, each with its points: ours, and those of the sender's choice. */
export function highRules({ kind: { chosen = [] }, assassin, rspamd }: Scored): {
  ours: string[];
  theirs: string[];
} {
  const high = Object.entries({ ...assassin, ...rspamd }).filter(([, points]) => points > MOST_POINTS);
  const isChosen = (name: string): boolean => chosen.some((start) => name.startsWith(start));
  const shown = (some: typeof high): string[] => some.map(([name, points]) => `${name} ${points.toFixed(1)}`);
  return {
    ours: shown(high.filter(([name]) => !isChosen(name))),
    theirs: shown(high.filter(([name]) => isChosen(name))),
  };
}

const ZONE = "post.example.net";
const FROM = "example.org";
const NONE = { opens: false, clicks: false };
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
