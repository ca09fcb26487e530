import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { FALL_BACK_AFTER_MS } from "../../src/flows/domains/check-times.ts";
import { RETIRED_KEY_MS, verifyDomain } from "../../src/flows/domains/verify.ts";
import { resolveAddress, resolveCname, resolveMx, resolveNs, resolveTxt } from "../../src/net/dns/lookups.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { type Domain, getDomain } from "../../src/store/domains/domains.ts";
import { restartConfigured } from "../../src/store/messages/restarted-waits.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsBehaviour, startDns } from "../support/dns.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NAME = "news.example.com";
/** Records that must exist. A failing domain loses them in these tests. */
const SPF = `TXT ${NAME}`;

let api: TestApi;
let id: string;
beforeEach(async () => {
  api = await testApi();
  const made = await api.call("POST", "/v1/domains", { body: { domain: NAME } });
  id = made.json.id;
  publish(made.json.records);
});
afterEach(() => api.close());

function publish(records: { type: string; name: string; value: string }[]): void {
  for (const { type, name, value } of records) api.zone.set(`${type} ${name}`, [value]);
}

async function domain(): Promise<Domain> {
  const found = await getDomain(api.db, api.acme.a.id, id);
  if (found === null) throw new Error("the domain is gone");
  return found;
}

/** Advances the clock to the domain's next check and runs it. Returns the wait. */
async function nextCheck(): Promise<number> {
  const wait = ((await domain()).nextCheckAt ?? Number.NaN) - api.clock.now();
  api.clock.advance(wait - 1);
  expect(await recheckDue(api.domains, 10)).toBe(0);
  api.clock.advance(1);
  expect(await recheckDue(api.domains, 10)).toBe(1);
  return wait;
}

/** Checks the domain once, after some time that makes it due. */
async function checkAfter(ms: number): Promise<void> {
  api.clock.advance(ms);
  expect(await recheckDue(api.domains, 10)).toBe(1);
}

const call = (path: string, method = "POST") => api.call(method, `/v1/domains/${id}${path}`);

describe("the sweep checks", () => {
  test("a pending domain every five minutes for 48 hours, then every hour", async () => {
    const registered = api.clock.now();
    api.zone.clear();
    for (let check = 0; check < 3; check++) expect(await nextCheck()).toBe(5 * MINUTE);
    api.clock.advance(registered + 48 * HOUR - 1 - api.clock.now());
    expect(await recheckDue(api.domains, 10)).toBe(1);
    expect(await nextCheck()).toBe(5 * MINUTE);
    for (let check = 0; check < 3; check++) expect(await nextCheck()).toBe(HOUR);
    expect((await domain()).status).toBe("pending");
  });

  test("a domain that the sweep finds verified without a call is then checked once a day", async () => {
    expect(await nextCheck()).toBe(5 * MINUTE);
    expect((await call("", "GET")).json).toMatchObject({
      status: "verified",
      checkedAt: new Date(api.clock.now()).toISOString(),
    });
    expect(await nextCheck()).toBe(24 * HOUR);
  });

  test("a domain after its usual wait if the clock was set back by a week", async () => {
    expect(await nextCheck()).toBe(5 * MINUTE);
    api.clock.step(-7 * 24 * HOUR);
    await api.db.write(restartConfigured(api.clock.now(), RETIRED_KEY_MS));
    expect(await nextCheck()).toBe(24 * HOUR);
  });
});

describe("a verified domain whose record goes", () => {
  beforeEach(async () => {
    expect((await call("/verify")).json.status).toBe("verified");
    api.zone.delete(SPF);
  });

  test("a verified domain whose record goes is checked hourly, is verified for 72 hours of failing checks, then pending and failing, then verified again", async () => {
    await nextCheck();
    for (let check = 0; check < 3; check++) expect(await nextCheck()).toBe(HOUR);
    await checkAfter(FALL_BACK_AFTER_MS - 3 * HOUR - 1);
    expect((await call("", "GET")).json.status).toBe("verified");
    await checkAfter(HOUR);
    const fallen = (await call("", "GET")).json;
    expect([fallen.status, fallen.authHealth.spf]).toEqual(["pending", "failing"]);
    const receiving = await api.call("PATCH", `/v1/domains/${id}/receiving`, { body: { enabled: true } });
    expect(receiving.status).toBe(409);
    publish(fallen.records);
    expect((await call("/verify")).json.status).toBe("verified");
  });

  test("a verified domain whose record goes loses no time of its 72 hours while a DNS server does not answer", async () => {
    await nextCheck();
    await checkAfter(40 * HOUR);
    for (const type of ["TXT", "CNAME", "MX"])
      for (const name of [NAME, `_dmarc.${NAME}`, "_dmarc.example.com", `pr1._domainkey.${NAME}`])
        api.zone.set(`${type} ${name}`, "failure");
    for (const hours of [1, 99, 1]) await checkAfter(hours * HOUR);
    expect((await domain()).status).toBe("verified");
    api.zone.clear();
    await checkAfter(32 * HOUR - 1);
    expect((await domain()).status).toBe("verified");
    await checkAfter(HOUR);
    expect((await domain()).status).toBe("pending");
  });

  test("a verified domain whose record goes counts from zero again once a check has found everything", async () => {
    await nextCheck();
    api.clock.advance(71 * HOUR);
    publish((await call("", "GET")).json.records);
    expect((await call("/verify")).json.status).toBe("verified");
    api.zone.delete(SPF);
    await call("/verify");
    api.clock.advance(71 * HOUR);
    expect((await call("/verify")).json.status).toBe("verified");
    api.clock.advance(HOUR);
    expect((await call("/verify")).json.status).toBe("pending");
  });
});

describe("a check that the resolver cannot finish", () => {
  const rows: [DnsBehaviour, string][] = [
    ["servfail", "verified"],
    ["refused", "verified"],
    ["silent", "verified"],
    ["truncate_udp", "verified"],
    ["formerr_on_edns", "verified"],
    // The answers of an empty zone count as answers.
    ["answer", "pending"],
  ];
  test.each(rows)(
    "as with a server that does %s, changes nothing for a verified domain: %s",
    async (behaviour, status) => {
      await call("/verify");
      const dns = await startDns();
      if (behaviour === "truncate_udp" || behaviour === "formerr_on_edns")
        for (const [key, records] of api.zone) {
          const [type, name = ""] = key.split(" ");
          if (type === "TXT" || type === "CNAME")
            dns.add(...(records === "failure" ? [] : records).map((data) => ({ name, type, data }) as const));
        }
      dns.behave(behaviour);
      const server = { ip: dns.ip, port: dns.port };
      const tryTimeoutMs = behaviour === "silent" ? 20 : 20_000;
      const resolver = createResolver({ clock: systemClock }, { servers: [server], tryTimeoutMs, tries: 1 });
      const lookups = {
        cname: (name: string) => resolveCname(resolver, name, { fresh: true }),
        txt: (name: string) => resolveTxt(resolver, name, { fresh: true }),
        mx: (name: string) => resolveMx(resolver, name, { fresh: true }),
        ns: (name: string) => resolveNs(resolver, name, { fresh: true }),
        a: (name: string) => resolveAddress(resolver, name, "A", { fresh: true }),
        aaaa: (name: string) => resolveAddress(resolver, name, "AAAA", { fresh: true }),
      };
      // Two checks, the second of them late enough to exceed any limit.
      for (let checks = 0; checks < 2; checks++) {
        await verifyDomain({ ...api.domains, lookups }, api.acme.a.id, id);
        api.clock.advance(FALL_BACK_AFTER_MS);
      }
      const after = await verifyDomain({ ...api.domains, lookups }, api.acme.a.id, id);
      expect(after?.status).toBe(status as Domain["status"]);
      expect(after?.verified.spf).toBe(status === "verified");
      dns.stop();
    },
  );
});

describe("of two checks at a time", () => {
  /** Lookups that wait, until the test releases them, to give answers of now. */
  function held() {
    const { promise, resolve } = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const { lookups } = api.domains;
    const txt = async (name: string) => {
      const answer = await lookups.txt(name);
      reached.resolve();
      await promise;
      return answer;
    };
    return {
      deps: { ...api.domains, lookups: { ...lookups, txt } },
      reached: reached.promise,
      release: resolve,
    };
  }

  test("the sweep's result is dropped if another check has ended in the meantime", async () => {
    const records = (await call("", "GET")).json.records;
    api.zone.clear();
    const { deps, reached, release } = held();
    const old = verifyDomain(deps, api.acme.a.id, id, "sweep");
    await reached;
    publish(records);
    api.clock.advance(1);
    expect((await call("/verify")).json.status).toBe("verified");
    release();
    expect((await old)?.status).toBe("verified");
    expect((await domain()).verified).toMatchObject({ dkim: true, spf: true, dmarc: true });
  });

  test("a client's result counts, and a domain verified in the meantime stays verified", async () => {
    const records = (await call("", "GET")).json.records;
    api.zone.clear();
    const { deps, reached, release } = held();
    const live = verifyDomain(deps, api.acme.a.id, id);
    await reached;
    publish(records);
    api.clock.advance(1);
    await call("/verify");
    release();
    expect(await live).toMatchObject({
      status: "verified",
      verified: { spf: false },
      failingSince: api.clock.now(),
    });
  });

  test("a result for an old receiving setting does not delay the check of the MX record", async () => {
    await call("/verify");
    const { deps, reached, release } = held();
    const old = verifyDomain(deps, api.acme.a.id, id, "sweep");
    await reached;
    await api.call("PATCH", `/v1/domains/${id}/receiving`, { body: { enabled: true } });
    release();
    await old;
    expect((await domain()).nextCheckAt).toBe(api.clock.now());
  });
});
