import { describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { type RecordState, findDkim, findDmarc, findMx } from "../../src/flows/records/lookups.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { registerDomain } from "../../src/flows/domains/register.ts";
import { FALL_BACK_AFTER_MS, nextCheckAt } from "../../src/flows/domains/check-times.ts";
import { judge, verifyDomain } from "../../src/flows/domains/verify.ts";
import type { PublicDkimKey } from "../../src/store/domains/dkim-keys.ts";
import { type Domain, findDomain, getDomain } from "../../src/store/domains/domains.ts";
import { type TestZone, testApi, zoneLookups } from "../support/api.ts";

const SERVICE = "post.example";
const KEY: PublicDkimKey = {
  token: "tok",
  domainId: "dom_1",
  selector: "pr1",
  algorithm: "rsa",
  publicKey: "MIIBabc+/=",
  status: "active",
  retireAt: null,
  createdAt: 0,
};
const SELECTOR = "pr1._domainkey.a.example.com";

type Zone = [string, readonly string[] | "failure"][];

function finder(zone: Zone) {
  return zoneLookups(new Map(zone) as TestZone);
}

describe("a DKIM record", () => {
  const rows: [string, Zone, RecordState][] = [
    ["an alias of our name", [[`CNAME ${SELECTOR}`, ["tok.dkim.post.example"]]], "present"],
    ["an alias of another token", [[`CNAME ${SELECTOR}`, ["old.dkim.post.example"]]], "absent"],
    ["no record", [], "absent"],
    ["the key itself", [[`TXT ${SELECTOR}`, ["v=DKIM1; k=rsa; p=MIIBabc+/="]]], "present"],
    ["the key with white space in it", [[`TXT ${SELECTOR}`, ["v=DKIM1; p= MIIB abc+/= ; t=s"]]], "present"],
    [
      "the key and another one",
      [[`TXT ${SELECTOR}`, ["v=DKIM1; p=MIIBabc+/=", "v=DKIM1; p=MIIBother"]]],
      "absent",
    ],
    ["another key", [[`TXT ${SELECTOR}`, ["v=DKIM1; p=MIIBother"]]], "absent"],
    ["a key revoked", [[`TXT ${SELECTOR}`, ["v=DKIM1; p="]]], "absent"],
    ["our key in another tag", [[`TXT ${SELECTOR}`, ["v=DKIM1; xp=MIIBabc+/=; p=MIIBother"]]], "absent"],
    ["no answer", [[`CNAME ${SELECTOR}`, "failure"]], "unknown"],
    ["no alias and no answer", [[`TXT ${SELECTOR}`, "failure"]], "unknown"],
  ];
  test.each(rows)("%s", async (_name, zone, found) => {
    expect(await findDkim(finder(zone), "a.example.com", KEY, SERVICE)).toBe(found);
  });
});

describe("a DMARC record", () => {
  const own = "TXT _dmarc.a.example.com";
  const organizational = "TXT _dmarc.example.com";
  const rows: [string, Zone, RecordState][] = [
    ["at the domain", [[own, ["v=DMARC1; p=none; rua=mailto:x@y.example"]]], "present"],
    ["without spaces", [[own, ["v=DMARC1;p=reject"]]], "present"],
    ["with other tags in between", [[own, ["v=DMARC1; sp=none; p=quarantine;"]]], "present"],
    ["at the organizational domain", [[organizational, ["v=DMARC1; p=reject"]]], "present"],
    ["among other TXT records", [[own, ["hello", "v=DMARC1; p=none"]]], "present"],
    ["none", [], "absent"],
    ["without a policy", [[own, ["v=DMARC1"]]], "absent"],
    ["with an unknown policy", [[own, ["v=DMARC1; p=maybe"]]], "absent"],
    ["with a subdomain policy alone", [[own, ["v=DMARC1; sp=none"]]], "absent"],
    ["with the version last", [[own, ["p=none; v=DMARC1"]]], "absent"],
    ["of another version", [[own, ["v=DMARC2; p=none"]]], "absent"],
    ["with the version in small letters", [[own, ["v=dmarc1; p=none"]]], "absent"],
    ["twice", [[own, ["v=DMARC1; p=none", "v=DMARC1; p=reject"]]], "absent"],
    [
      "broken, which hides the organizational one",
      [
        [own, ["v=DMARC1; p=x"]],
        [organizational, ["v=DMARC1; p=none"]],
      ],
      "absent",
    ],
    ["no answer", [[own, "failure"]], "unknown"],
    ["none, and no answer for the parent domain", [[organizational, "failure"]], "unknown"],
  ];
  test.each(rows)("%s", async (_name, zone, found) => {
    expect(await findDmarc(finder(zone), "a.example.com")).toBe(found);
  });
});

describe("an MX record", () => {
  const rows: [string, readonly string[] | "failure", RecordState][] = [
    ["ours", ["mx.post.example"], "present"],
    ["ours among others", ["mx.other.example", "mx.post.example"], "present"],
    ["another", ["mx.other.example"], "absent"],
    ["no answer", "failure", "unknown"],
  ];
  test.each(rows)("%s", async (_name, records, found) => {
    expect(await findMx(finder([["MX a.example.com", records]]), "a.example.com", SERVICE)).toBe(found);
  });
});

const T0 = 1_750_000_000_000;
const HOUR = 3_600_000;
const ALL = { dkim: "present", spf: "present", dmarc: "present", mx: "absent" } as const;

function domainOf(changes: Partial<Domain> = {}): Domain {
  return {
    id: "dom_1",
    accountId: "acc_1",
    senderId: "snd_1",
    name: "a.example.com",
    status: "pending",
    verified: { dkim: false, spf: false, dmarc: false, mx: false },
    recommended: { returnPath: false, links: false },
    delegated: false,
    wildcard: false,
    delegationToken: "token",
    served: false,
    delegationFound: false,
    delegationSeenAt: null,
    receiving: false,
    routeIds: [],
    verifiedAt: null,
    failingSince: null,
    checkedAt: null,
    nextCheckAt: null,
    dmarcAuto: false,
    dmarcPolicy: "none",
    dmarcMoves: [],
    createdAt: T0,
    ...changes,
  };
}

const OWN = { returnPath: true, links: false };
const SOUND = domainOf({
  status: "verified",
  verified: { dkim: true, spf: true, dmarc: true, mx: false },
  verifiedAt: T0,
});

test("a domain that was never verified does not count as failing", () => {
  const checked = judge(domainOf(), { ...ALL, spf: "absent" }, null, T0 + HOUR);
  expect([checked.status, checked.failingSince]).toEqual(["pending", null]);
});

describe("a verified domain", () => {
  test("a verified domain that breaks stays verified for 72 hours of failing checks, then falls back", () => {
    const broken = { ...ALL, spf: "absent" } as const;
    const first = { ...SOUND, ...judge(SOUND, broken, null, T0) };
    expect([first.status, first.failingSince]).toEqual(["verified", T0]);
    const last = { ...first, ...judge(first, broken, null, T0 + FALL_BACK_AFTER_MS - 1) };
    expect([last.status, last.failingSince]).toEqual(["verified", T0]);
    const fallen = judge(last, broken, null, T0 + FALL_BACK_AFTER_MS);
    expect([fallen.status, fallen.failingSince, fallen.verifiedAt]).toEqual(["pending", null, T0]);
  });

  test("a verified domain that is repaired in time starts a new count", () => {
    const broken = { ...ALL, dkim: "absent" } as const;
    const first = { ...SOUND, ...judge(SOUND, broken, null, T0) };
    const repaired = { ...first, ...judge(first, ALL, null, T0 + HOUR) };
    expect([repaired.status, repaired.failingSince]).toEqual(["verified", null]);
    const again = judge(repaired, broken, null, T0 + FALL_BACK_AFTER_MS + HOUR);
    expect([again.status, again.failingSince]).toEqual(["verified", T0 + FALL_BACK_AFTER_MS + HOUR]);
  });

  test("a verified domain loses nothing while the DNS does not answer, however long", () => {
    const silent = { dkim: "unknown", spf: "unknown", dmarc: "unknown", mx: "unknown" } as const;
    const after = judge(SOUND, silent, null, T0 + 100 * FALL_BACK_AFTER_MS);
    expect(after).toMatchObject({ status: "verified", verified: SOUND.verified, failingSince: null });
    const failing = { ...SOUND, ...judge(SOUND, { ...ALL, spf: "absent" }, null, T0) };
    expect(judge(failing, silent, null, T0 + 2 * FALL_BACK_AFTER_MS).status).toBe("verified");
  });
});

test("a pending domain does not become verified while the DNS does not answer", () => {
  const found = { ...ALL, dmarc: "unknown" } as const;
  expect(judge(domainOf(), found, null, T0)).toMatchObject({ status: "pending", verifiedAt: null });
});

describe("the next check", () => {
  const rows: [string, Partial<Domain>, readonly number[] | null, number, number][] = [
    // Columns: changes, DOMAIN_RECHECK_SECONDS, age at the check, delay until the next.
    ["of a new domain is in 5 minutes", {}, null, 0, 300_000],
    ["also just before 48 hours", {}, null, 48 * HOUR - 1, 300_000],
    ["hourly from 48 hours on", {}, null, 48 * HOUR, HOUR],
    ["daily for a sound one", SOUND, null, HOUR, 24 * HOUR],
    ["hourly for a sound one that fails", { ...SOUND, failingSince: T0 }, null, HOUR, HOUR],
    ["soon for one whose MX is awaited", { ...SOUND, receiving: true }, null, HOUR, 300_000],
    ["hourly for it later", { ...SOUND, receiving: true }, null, 49 * HOUR, HOUR],
    ["hourly for one whose own return path is used", { ...SOUND, recommended: OWN }, null, 49 * HOUR, HOUR],
    [
      "daily for one whose own return path is in our zone",
      { ...SOUND, recommended: OWN, delegated: true, delegationFound: true },
      null,
      49 * HOUR,
      24 * HOUR,
    ],
    ["by the list: first", {}, [10, 20], 0, 10_000],
    ["by the list: second", {}, [10, 20], 10_000, 20_000],
    ["by the list: the last repeats", {}, [10, 20], 500_000, 20_000],
    ["by a list of zero: never a spin", {}, [0], 0, 100],
    ["by the list: the first for one made while the clock was ahead", {}, [10, 20], -HOUR, 10_000],
  ];
  test.each(rows)("%s", (_name, changes, list, age, delay) => {
    expect(nextCheckAt(domainOf({ ...changes, createdAt: T0 }), list, T0 + age)).toBe(T0 + age + delay);
  });
});

describe("the sweep's re-check", () => {
  test("checks each due domain of all projects once, even if one check fails", async () => {
    const api = await testApi();
    const names = Array.from({ length: 12 }, (_, at) => `d${at}.example.com`);
    const { acme, domains } = api;
    for (const [at, name] of names.entries()) {
      const senderId = at % 2 === 0 ? acme.a.id : acme.b.id;
      const wanted = { accountId: acme.id, senderId, name, now: api.clock.now() };
      await registerDomain(domains, {
        ...wanted,
        also(domain, [key]) {
          api.zone.set(`CNAME pr1._domainkey.${domain.name}`, [`${key?.token}.dkim.post.example`]);
          api.zone.set(`TXT ${domain.name}`, ["v=spf1 include:spf.post.example ~all"]);
          api.zone.set(`TXT _dmarc.${domain.name}`, ["v=DMARC1; p=none"]);
          return [];
        },
      });
    }
    expect(await recheckDue(domains, 100)).toBe(0);
    api.clock.advance(300_000);
    let asked = 0;
    const lookups = {
      ...domains.lookups,
      txt(name: string) {
        asked++;
        if (name === "d3.example.com") throw new Error("a bug in the resolver");
        return domains.lookups.txt(name);
      },
    };
    const taken = await Promise.all([
      recheckDue({ ...domains, lookups }, 100),
      recheckDue({ ...domains, lookups }, 100),
    ]);
    expect(taken.sort()).toEqual([0, 12]);
    expect(asked).toBeGreaterThan(12);
    const states = await Promise.all(
      names.map((name, at) => findDomain(api.db, at % 2 === 0 ? acme.a.id : acme.b.id, name)),
    );
    expect(states.map((domain) => domain?.status)).toEqual(
      names.map((name) => (name === "d3.example.com" ? "pending" : "verified")),
    );
    await api.close();
  });

  test("checks no more than the given number", async () => {
    const api = await testApi();
    const { acme, domains, clock } = api;
    for (const name of ["a.example.com", "b.example.com", "c.example.com"])
      await registerDomain(domains, {
        accountId: acme.id,
        senderId: acme.a.id,
        name,
        now: clock.now(),
        also: () => [],
      });
    clock.advance(300_000);
    expect(await recheckDue(domains, 2)).toBe(2);
    expect(await recheckDue(domains, 2)).toBe(1);
    await api.close();
  });

  test("a domain deleted during its check stays deleted", async () => {
    const api = await testApi();
    const { acme, domains, clock, db } = api;
    let id = "";
    await registerDomain(domains, {
      accountId: acme.id,
      senderId: acme.a.id,
      name: "a.example.com",
      now: clock.now(),
      also(domain) {
        id = domain.id;
        return [];
      },
    });
    const lookups = {
      ...domains.lookups,
      async mx(name: string) {
        await db.write([{ sql: "DELETE FROM domains WHERE id = ?", args: [id] }]);
        return domains.lookups.mx(name);
      },
    };
    expect(await verifyDomain({ ...domains, lookups }, acme.a.id, id)).toBeNull();
    expect(await getDomain(db, acme.a.id, id)).toBeNull();
    expect(await verifyDomain(domains, acme.a.id, newId("dom", clock.now()))).toBeNull();
    await api.close();
  });
});
