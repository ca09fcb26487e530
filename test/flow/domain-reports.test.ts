import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { systemClock } from "../../src/clock.ts";
import { dmarcName } from "../../src/flows/records/records.ts";
import { delegatedRecords, MOVING_POLICY_TTL_SECONDS } from "../../src/flows/zone/delegated-zone.ts";
import { POLICY_TTL_SECONDS } from "../../src/flows/zone/service-zone.ts";
import { verifiedDomains } from "../../src/store/domains/domains.ts";
import { resolveTxt } from "../../src/net/dns/lookups.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import {
  deleteOldReports,
  MAX_COUNTED_ROWS,
  MAX_OTHER_REPORTS,
  MAX_OTHER_ROWS,
} from "../../src/store/domains/reports.ts";
import { dmarcXml, fileLetter, type DmarcForm, type ReportedMail } from "../support/domain-reports.ts";
import { deliver } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";

const GOOGLE = "noreply-dmarc-support@google.com";
const STRANGER = "dmarc@stranger.test";
const OURS = "192.0.2.10";
const TAKEN = /^250 2\.0\.0 OK, report taken/;

let service: TestService;
let counted = 0;

beforeAll(async () => {
  service = await startService({ PUBLIC_IPS: OURS, DNS_HOST: "127.0.0.1", DNS_PORT: String(freePort()) });
  for (const name of ["google.com", "stranger.test", "yahoo.com"])
    service.dns.add({ name, type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
});
afterAll(() => service.stop());

interface Sent extends Partial<DmarcForm> {
  domain: string;
  mailFrom?: string;
  to?: string;
}

/** Delivers a DMARC report with its own id. */
function report({ mailFrom: from = GOOGLE, to = `dmarc@${SERVICE_DOMAIN}`, ...form }: Sent): Promise<string> {
  const xml = dmarcXml({ id: `r${++counted}`, records: [{ ip: OURS }], ...form });
  return deliver(service, fileLetter(gzipSync(xml), { from, to }));
}

async function rowsOf(id: string, query = "", key?: string) {
  const { status, body } = await service.call(
    "GET",
    `/v1/domains/${id}/reports?limit=100${query}`,
    undefined,
    key === undefined ? {} : { key },
  );
  expect(status).toBe(200);
  return body.data;
}

async function adviceOf(id: string) {
  return (await service.call("GET", `/v1/domains/${id}/policy-advice`)).body;
}

/** A separate project with its key. */
async function newProject(): Promise<{ id: string; key: string }> {
  const account = { key: service.accountKey };
  const { body } = await service.call("POST", "/v1/senders", { name: `Project ${++counted}` }, account);
  const made = await service.call("POST", "/v1/api-keys", { name: "k", senderId: body.id }, account);
  return { id: body.id, key: made.body.secret };
}

async function inboundMessages(): Promise<number> {
  return (await service.call("GET", "/v1/emails?direction=inbound&limit=100")).body.data.length;
}

describe("a DMARC report to the mailbox that our records name", () => {
  test("a DMARC report to the mailbox that our records name is added to the sums of its domain, and is no message", async () => {
    const id = await verifiedDomain(service, "sums.test");
    const before = await inboundMessages();
    const records: ReportedMail[] = [
      { ip: OURS, count: 40 },
      { ip: OURS, count: 2, dkim: "fail", spf: "fail", disposition: "reject" },
      { ip: "2001:DB8::0001", count: 3, spf: "fail" },
    ];
    expect(await report({ domain: "sums.test", records })).toMatch(TAKEN);
    expect(await report({ domain: "sums.test", records })).toMatch(TAKEN);
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const row = {
      id: expect.stringMatching(/^rpt_/),
      kind: "dmarc",
      day,
      reporter: "google.com",
      counts: true,
    };
    expect(
      (await rowsOf(id)).toSorted(
        (a: { messages: number }, b: { messages: number }) => b.messages - a.messages,
      ),
    ).toEqual([
      { ...row, source: OURS, result: "dkim_and_spf", disposition: "none", messages: 80 },
      { ...row, source: "2001:db8::1", result: "dkim", disposition: "none", messages: 6 },
      { ...row, source: OURS, result: "fail", disposition: "reject", messages: 4 },
    ]);
    expect(await inboundMessages()).toBe(before);
  });

  test("a DMARC report to the mailbox that our records name counts once for each id and organization", async () => {
    const id = await verifiedDomain(service, "twice.test");
    for (const mailFrom of [GOOGLE, GOOGLE, STRANGER, STRANGER])
      expect(await report({ domain: "twice.test", id: "same", mailFrom })).toMatch(TAKEN);
    expect(
      (await rowsOf(id))
        .map(({ reporter, messages }: Record<string, unknown>) => [reporter, messages])
        .sort(),
    ).toEqual([
      ["google.com", 1],
      ["stranger.test", 1],
    ]);
  });

  test("a DMARC report to the mailbox that our records name is shown to the project that has verified the domain, and to no other", async () => {
    const { key } = await newProject();
    const id = await verifiedDomain(service, "theirs.test", key);
    const pending = await newProject();
    await service.call("POST", "/v1/domains", { domain: "unproven.test" }, { key: pending.key });
    await report({ domain: "theirs.test" });
    expect(await report({ domain: "unproven.test" })).toMatch(TAKEN);
    expect(await rowsOf(id, "", key)).toHaveLength(1);
    for (const path of ["reports", "policy-advice"])
      expect((await service.call("GET", `/v1/domains/${id}/${path}`)).status).toBe(404);
  });

  test("about a policy of a domain above belongs to its owner, else to each domain in From", async () => {
    const { key } = await newProject();
    const below = await verifiedDomain(service, "mail.above.test", key);
    const records = [
      { ip: OURS, from: "mail.above.test" },
      { ip: OURS, from: "x.mail.above.test" },
      { ip: OURS, from: "evil.test" },
    ];
    await report({ domain: "above.test", records });
    expect(await rowsOf(below, "", key)).toMatchObject([{ messages: 2 }]);
    const above = await verifiedDomain(service, "above.test");
    await report({ domain: "above.test", records });
    expect(await rowsOf(above)).toMatchObject([{ messages: 2 }]);
    expect(await rowsOf(below, "", key)).toMatchObject([{ messages: 2 }]);
  });

  test.each([
    ["31 days old", { daysAgo: 32 }],
    ["of the day after tomorrow", { daysAgo: -2 }],
  ])("a DMARC report to the mailbox that our records name is dropped if it is %s", async (what, form) => {
    const domain = `${what.replaceAll(" ", "-")}.test`;
    const id = await verifiedDomain(service, domain);
    expect(await report({ domain, ...form })).toMatch(TAKEN);
    expect(await rowsOf(id)).toEqual([]);
  });

  test("about the service's own names is a message of the first project, as other mail to the mailbox is", async () => {
    const before = await inboundMessages();
    expect(await report({ domain: `bounce.${SERVICE_DOMAIN}` })).toMatch(/^250 2\.0\.0 OK msg_/);
    expect(await deliver(service, { to: `dmarc@${SERVICE_DOMAIN}`, body: "Is this a report?" })).toMatch(
      /OK msg_/,
    );
    expect(await inboundMessages()).toBe(before + 2);
  });

  test("a DMARC report to the mailbox that our records name is a message of the first project if it cannot be read within the limits, as a bomb is", async () => {
    const bomb = fileLetter(gzipSync(Buffer.alloc(100 * 1024 * 1024)), { from: GOOGLE });
    expect(await deliver(service, bomb)).toMatch(/^250 2\.0\.0 OK msg_/);
  });

  test("a DMARC report to the mailbox that our records name is also a message of a mailbox that does not take reports", async () => {
    const id = await verifiedDomain(service, "both.test");
    const xml = dmarcXml({ domain: "both.test", records: [{ ip: OURS }] });
    const letter = {
      ...fileLetter(gzipSync(xml), { from: GOOGLE }),
      to: [`dmarc@${SERVICE_DOMAIN}`, `abuse@${SERVICE_DOMAIN}`],
    };
    const reply = await deliver(service, letter);
    const record = await service.call("GET", `/v1/emails/${/msg_\w+/.exec(reply)?.[0]}`);
    expect(record.body.envelope.rcptTo).toEqual([`abuse@${SERVICE_DOMAIN}`]);
    expect(await rowsOf(id)).toHaveLength(1);
  });
});

describe("a TLS report", () => {
  test("a TLS report is added up by domain, host and result", async () => {
    const [one, two] = [
      await verifiedDomain(service, "tls-one.test"),
      await verifiedDomain(service, "tls-two.test"),
    ];
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const policy = (domain: string, ok: number, failed: unknown[] = []) => ({
      policy: { "policy-type": "sts", "policy-domain": domain },
      summary: { "total-successful-session-count": ok, "total-failure-session-count": 3 },
      "failure-details": failed,
    });
    const failure = {
      "result-type": "certificate-expired",
      "receiving-mx-hostname": "MX.Mail.Test",
      "failed-session-count": 3,
    };
    const text = JSON.stringify({
      "organization-name": "Google Inc.",
      "date-range": { "start-datetime": `${day}T00:00:00Z`, "end-datetime": `${day}T23:59:59Z` },
      "report-id": "t1",
      policies: [
        policy("tls-one.test", 5, [failure, { ...failure, "result-type": "made-up" }]),
        policy("tls-two.test", 7, [{ ...failure, "receiving-mx-hostname": "mx\ud800.test" }]),
      ],
    });
    const letter = fileLetter(gzipSync(text), {
      from: GOOGLE,
      to: `tls-reports@${SERVICE_DOMAIN}`,
      type: "application/tlsrpt+gzip",
    });
    expect(await deliver(service, letter)).toMatch(TAKEN);
    const shown = async (id: string) =>
      (await rowsOf(id, "&kind=tls"))
        .map((row: Record<string, unknown>) => [row.source, row.result, row.disposition, row.messages])
        .sort();
    expect(await shown(one)).toEqual([
      ["", "success", null, 5],
      ["mx.mail.test", "certificate-expired", null, 3],
      ["mx.mail.test", "other", null, 3],
    ]);
    // Half of a character, which JSON can name, would end the process when the row is read.
    expect(await shown(two)).toEqual([
      ["", "success", null, 7],
      ["mx\ufffd.test", "certificate-expired", null, 3],
    ]);
    expect(await rowsOf(one)).toEqual([]);
  });
});

describe("the rows of a day", () => {
  test.each([
    ["of reporters that count", GOOGLE, MAX_COUNTED_ROWS],
    ["of strangers", STRANGER, MAX_OTHER_ROWS],
  ])("the rows of a day %s name so many sources, and add the rest up", async (what, mailFrom, limit) => {
    const domain = `${what.replaceAll(" ", "-")}.test`;
    const id = await verifiedDomain(service, domain);
    const records = Array.from({ length: limit + 2 }, (_, at) => ({
      ip: `10.0.${at >> 8}.${at & 255}`,
      count: 1000 - at,
    }));
    await report({ domain, mailFrom, records: records.slice(0, limit) });
    const sources = async () => {
      const { db } = service.app;
      const rows = await db.all<{ source: string; messages: number }>(
        "SELECT source, messages FROM report_rows WHERE domain_id = ?",
        [id],
      );
      return {
        named: rows.filter(({ source }) => source !== "other").length,
        other: rows.find(({ source }) => source === "other")?.messages,
      };
    };
    expect(await sources()).toEqual({ named: limit, other: undefined });
    await report({ domain, mailFrom, records: records.slice(limit) });
    expect(await sources()).toEqual({ named: limit, other: 2000 - 2 * limit - 1 });
  });

  test("the rows of a day come from so many reports of strangers at most", async () => {
    const id = await verifiedDomain(service, "flood.test");
    for (let at = 0; at <= MAX_OTHER_REPORTS; at++)
      await report({ domain: "flood.test", mailFrom: STRANGER });
    expect(await rowsOf(id)).toMatchObject([{ messages: MAX_OTHER_REPORTS }]);
    await report({ domain: "flood.test" });
    expect(await rowsOf(id)).toHaveLength(2);
  });

  test("the rows of a day are deleted with the reports that made them, once their day is too old", async () => {
    const id = await verifiedDomain(service, "old.test");
    for (const daysAgo of [20, 21, 22]) await report({ domain: "old.test", daysAgo });
    const { db } = service.app;
    const before = new Date(Date.now() - 20 * 86_400_000).toISOString().slice(0, 10);
    const left = async () => [
      (await rowsOf(id)).length,
      (await db.all("SELECT report_id FROM taken_reports WHERE domain_id = ?", [id])).length,
    ];
    expect(await deleteOldReports(db, before, 1)).toBe(1);
    expect(await left()).toEqual([2, 2]);
    expect(await deleteOldReports(db, before, 10)).toBe(1);
    expect(await left()).toEqual([1, 1]);
  });

  test("the rows of a day are listed by day", async () => {
    const id = await verifiedDomain(service, "days.test");
    for (const daysAgo of [1, 3, 5]) await report({ domain: "days.test", daysAgo });
    const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
    const days = async (query: string) => (await rowsOf(id, query)).map(({ day }: { day: string }) => day);
    expect(await days(`&from=${dayAgo(3)}`)).toEqual([dayAgo(3), dayAgo(1)]);
    expect(await days(`&to=${dayAgo(3)}`)).toEqual([dayAgo(5), dayAgo(3)]);
    expect(await days(`&from=${dayAgo(4)}&to=${dayAgo(2)}`)).toEqual([dayAgo(3)]);
    expect((await service.call("GET", `/v1/domains/${id}/reports?from=soon`)).status).toBe(422);
  });
});

describe("policy advice", () => {
  test("policy advice counts reports of proven organizations, and only shows others", async () => {
    const id = await verifiedDomain(service, "judged.test");
    const good = { domain: "judged.test", records: [{ ip: OURS, count: 50 }] };
    const forged = [STRANGER, "user@yahoo.com", GOOGLE.replace("google", "goog1e")];
    for (const mailFrom of forged)
      for (let daysAgo = 1; daysAgo < 30; daysAgo++) await report({ ...good, mailFrom, daysAgo });
    expect(await adviceOf(id)).toMatchObject({
      now: "none",
      safe: "none",
      since: null,
      unknownSources: [],
      moves: [],
    });
    expect((await rowsOf(id)).every(({ counts }: { counts: boolean }) => !counts)).toBe(true);
    for (let daysAgo = 1; daysAgo < 20; daysAgo++) await report({ ...good, daysAgo });
    expect(await adviceOf(id)).toMatchObject({ now: "none", safe: "quarantine", since: expect.any(String) });
  });

  test("policy advice has the policy that is published above a domain without its own", async () => {
    const id = await verifiedDomain(service, "sub.inherits.test");
    service.dns.remove("_dmarc.sub.inherits.test");
    service.dns.add({ name: "_dmarc.inherits.test", type: "TXT", data: "v=DMARC1; p=reject; sp=quarantine" });
    expect((await adviceOf(id)).now).toBe("quarantine");
  });
});

describe("a domain whose policy the service moves", () => {
  async function delegated(name: string): Promise<string> {
    const made = await service.call("POST", "/v1/domains", { domain: name, delegated: true, dmarc: "auto" });
    expect(made.body).toMatchObject({ dmarc: "auto" });
    const [ns] = made.body.delegation.records;
    service.dns.add({ name, type: "NS", data: ns.value });
    const checked = await service.call("POST", `/v1/domains/${made.body.id}/verify`);
    expect(checked.body.delegation.status).toBe("active");
    return made.body.id;
  }

  async function published(id: string): Promise<string> {
    const { body } = await service.call("GET", `/v1/domains/${id}`);
    const record = body.records.find(({ purpose }: { purpose: string }) => purpose === "dmarc");
    return / p=(\w+);/.exec(record.value)?.[1] ?? "";
  }

  /** Waits until our name server publishes this DMARC policy. */
  function untilServed(name: string, policy: string): Promise<void> {
    const servers = [{ ip: "127.0.0.1", port: service.app.ports.dns ?? 0 }];
    const resolver = createResolver({ clock: systemClock }, { servers });
    return until(async () => {
      const found = await resolveTxt(resolver, `_dmarc.${name}`, { fresh: true });
      return found.status === "ok" && found.records[0]?.includes(` p=${policy};`) === true;
    });
  }

  test("a domain whose policy the service moves goes to quarantine when reports show that it is safe, and back at once when mail fails", async () => {
    const id = await delegated("auto.test");
    const good = { domain: "auto.test", records: [{ ip: OURS, count: 50 }] };
    for (let daysAgo = 13; daysAgo >= 1; daysAgo--) await report({ ...good, daysAgo });
    expect(await published(id)).toBe("none");
    for (let daysAgo = 29; daysAgo > 13; daysAgo--) await report({ ...good, daysAgo });
    expect(await published(id)).toBe("quarantine");
    await untilServed("auto.test", "quarantine");
    const bad = {
      domain: "auto.test",
      records: [{ ip: OURS, count: 10, dkim: "fail", spf: "fail" } as const],
    };
    await report({ ...bad, mailFrom: STRANGER });
    expect(await published(id)).toBe("quarantine");
    await report(bad);
    expect(await published(id)).toBe("none");
    const { now, safe, moves, reasons } = await adviceOf(id);
    expect({ now, safe }).toEqual({ now: "none", safe: "none" });
    expect(moves.map(({ from, to }: Record<string, string>) => `${from} ${to}`)).toEqual([
      "quarantine none",
      "none quarantine",
    ]);
    expect(reasons).toEqual([
      expect.stringMatching(/^On .*, 10 of 60 messages from known sources failed DMARC\.$/),
    ]);
    expect(moves[0].reason).toBe(reasons[0]);
  });

  /** The TTL of the DMARC record in a domain's zone. */
  async function ttlOf(name: string): Promise<number | undefined> {
    const { db } = service.app;
    const [domain] = await verifiedDomains(db, [name]);
    if (domain === undefined) throw new Error(`${name} is not verified`);
    const records = await delegatedRecords({ db, clock: systemClock }, SERVICE_DOMAIN, domain);
    return records.find((record) => record.name === dmarcName(name))?.ttl;
  }

  test("a domain whose policy the service moves is moved by hand only if that is switched off, and publishes p=none then", async () => {
    const id = await delegated("manual.test");
    for (let daysAgo = 29; daysAgo > 0; daysAgo--)
      await report({ domain: "manual.test", records: [{ ip: OURS, count: 50 }], daysAgo });
    expect(await published(id)).toBe("quarantine");
    expect(await ttlOf("manual.test")).toBe(MOVING_POLICY_TTL_SECONDS);
    const off = await service.call("PATCH", `/v1/domains/${id}`, { dmarc: "manual" });
    expect(off.body).toMatchObject({ dmarc: "manual" });
    expect(await ttlOf("manual.test")).toBe(POLICY_TTL_SECONDS);
    expect(await published(id)).toBe("none");
    await report({ domain: "manual.test" });
    expect(await published(id)).toBe("none");
  });

  test("a domain whose policy the service moves is a delegated one", async () => {
    const made = await service.call("POST", "/v1/domains", { domain: "hand.test", dmarc: "auto" });
    expect(made).toMatchObject({ status: 422, body: { error: { param: "dmarc" } } });
    const id = await verifiedDomain(service, "hand.test");
    expect((await service.call("GET", `/v1/domains/${id}`)).body).not.toHaveProperty("dmarc");
    const changed = await service.call("PATCH", `/v1/domains/${id}`, { dmarc: "auto" });
    expect(changed).toMatchObject({
      status: 409,
      body: { error: { code: "invalid_state", param: "dmarc" } },
    });
    expect((await service.call("PATCH", `/v1/domains/${id}`, { dmarc: "manual" })).status).toBe(200);
  });
});

test("sums with half of a character, which version 1.0 could store, go at the next start, and others stay", async () => {
  const { db } = service.app;
  const id = await verifiedDomain(service, "halves.test");
  const whole = ["mx.one.test", "\ud7ff", "\ue000", "\u{1f600}", "\ufffd"];
  const halves = ["\ud800", "a\udfff.test", "\ufffd\udbff"];
  const sources = JSON.stringify([...whole, ...halves]);
  await db.write([
    {
      sql: `INSERT INTO report_rows (id, domain_id, kind, day, counts, reporter, source, result, disposition, messages)
        SELECT 'rpt_' || key, ?, 'tls', '2026-11-29', 1, 'r', value, 'other', '', 1 FROM json_each(?)`,
      args: [id, sources],
    },
    { sql: "UPDATE schema_migrations SET filled_at = NULL WHERE name = 'whole_characters'", args: [] },
  ]);
  await migrate(db, systemClock.now());
  const left = await db.all<{ source: string }>("SELECT source FROM report_rows WHERE domain_id = ?", [id]);
  expect(left.map(({ source }) => source).toSorted()).toEqual(whole.toSorted());
});
