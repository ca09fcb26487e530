import type { HostSecurity } from "../../src/core/tls-policy.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { StoredPolicy, StsFinding } from "../../src/net/mta-sts.ts";
import type { StsMode } from "../../src/net/mta-sts-policy.ts";
import { type SecuredRoute, securityFor, securityKey } from "../../src/net/transport-security.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { signZone, testResolver, tlsaRecord } from "../support/sts-host.ts";

const SHA256 = Buffer.alloc(32, 1);
const host = (name: string) => ({ name, preference: 10, addresses: ["127.0.0.1"] });
let dns: TestDns;

/** Hosts of every kind of DANE, all of one signed domain. */
const DANE_HOSTS = ["none.in.test", "dane.in.test", "useless.in.test", "broken.in.test"];

beforeAll(async () => {
  dns = await startDns(
    ...DANE_HOSTS.map(
      (exchange) => ({ name: "in.test", type: "MX", data: { preference: 10, exchange } }) as const,
    ),
    ...DANE_HOSTS.map((name) => ({ name, type: "A", data: "127.0.0.1" }) as const),
    tlsaRecord("_25._tcp.dane.in.test", 3, 1, 1, SHA256),
    tlsaRecord("_25._tcp.useless.in.test", 1, 1, 1, SHA256),
  );
  dns.behave("servfail", "_25._tcp.broken.in.test");
  signZone(dns, () => true);
});
afterAll(() => dns.stop());

function policy(mode: StsMode, ...mx: string[]): StoredPolicy {
  return { domain: "in.test", id: "one", mode, mx, maxAgeSeconds: 86_400, fetchedAt: 0 };
}

async function secured(
  hosts: string[],
  kept: StoredPolicy | null,
  renewed: StoredPolicy | null = null,
): Promise<SecuredRoute> {
  const found: StsFinding = { kind: "found", policy: kept, renewed: async () => renewed };
  const deps = {
    resolver: testResolver(dns),
    mtaSts: { policyFor: async () => found },
    port: 25,
    trustsDnssec: true,
  };
  return securityFor(deps, "in.test", hosts.map(host));
}

/** Each remaining host with its requirement, or the deferral. */
function shown(found: SecuredRoute): string[] | string {
  if (found.kind === "deferred") return found.reason;
  return found.hosts.map(({ name, security }) => `${name}: ${shownSecurity(security)}`);
}

function shownSecurity(security: HostSecurity | undefined): string {
  if (security === undefined) return "nothing";
  return `${security.tls}${security.dane === undefined ? "" : " by DANE"}`;
}

const NO_HOST = "no mail host of in.test may be used";

describe("the requirements for hosts", () => {
  test.each<[hosts: string[], policy: StoredPolicy | null, found: string[] | string]>([
    [["none.in.test"], null, ["none.in.test: nothing"]],
    [["none.in.test"], policy("none"), ["none.in.test: nothing"]],
    [["none.in.test"], policy("enforce", "*.in.test"), ["none.in.test: verified"]],
    [["none.in.test"], policy("testing", "*.in.test"), ["none.in.test: opportunistic"]],
    [["none.in.test"], policy("testing", "other.test"), ["none.in.test: opportunistic"]],
    [
      ["none.in.test"],
      policy("enforce", "other.test"),
      `${NO_HOST} (none.in.test: not named by the MTA-STS policy)`,
    ],
    [["dane.in.test"], null, ["dane.in.test: verified by DANE"]],
    [["dane.in.test"], policy("enforce", "other.test"), ["dane.in.test: verified by DANE"]],
    [["useless.in.test"], null, ["useless.in.test: encrypted"]],
    [["useless.in.test"], policy("testing", "*.in.test"), ["useless.in.test: encrypted"]],
    [["useless.in.test"], policy("enforce", "*.in.test"), ["useless.in.test: verified"]],
    [["broken.in.test"], null, `${NO_HOST} (broken.in.test: DANE, TLSA lookup: servfail)`],
    [
      ["broken.in.test"],
      policy("enforce", "*.in.test"),
      `${NO_HOST} (broken.in.test: DANE, TLSA lookup: servfail)`,
    ],
    [
      DANE_HOSTS,
      null,
      ["none.in.test: nothing", "dane.in.test: verified by DANE", "useless.in.test: encrypted"],
    ],
    [
      DANE_HOSTS,
      policy("enforce", "useless.in.test"),
      ["dane.in.test: verified by DANE", "useless.in.test: verified"],
    ],
  ])("%j under %j", async (hosts, kept, found) => {
    expect(shown(await secured(hosts, kept))).toEqual(found);
  });

  test("a policy that leaves no host is replaced by one that is being fetched", async () => {
    const older = policy("enforce", "gone.in.test");
    expect(shown(await secured(["none.in.test"], older, policy("enforce", "none.in.test")))).toEqual([
      "none.in.test: verified",
    ]);
    expect(shown(await secured(["none.in.test"], older, policy("enforce", "third.in.test")))).toStartWith(
      NO_HOST,
    );
    expect(shown(await secured(["none.in.test"], older, null))).toStartWith(NO_HOST);
  });

  test("the requirements for hosts have no DANE if the DNS servers are not trusted, and MTA-STS remains", async () => {
    const found: StsFinding = {
      kind: "found",
      policy: policy("enforce", "dane.in.test"),
      renewed: async () => null,
    };
    const deps = {
      resolver: testResolver(dns),
      mtaSts: { policyFor: async () => found },
      port: 25,
      trustsDnssec: false,
    };
    expect(shown(await securityFor(deps, "in.test", DANE_HOSTS.map(host)))).toEqual([
      "dane.in.test: verified",
    ]);
  });

  test("the requirements for hosts are unknown while the policy is", async () => {
    const deferred: StsFinding = { kind: "deferred", reason: "not yet" };
    const deps = {
      resolver: testResolver(dns),
      mtaSts: { policyFor: async () => deferred },
      port: 25,
      trustsDnssec: true,
    };
    expect(await securityFor(deps, "in.test", [host("none.in.test")])).toEqual(deferred);
    expect(shown(await securityFor(deps, "in.test", [host("dane.in.test")]))).toEqual([
      "dane.in.test: verified by DANE",
    ]);
  });
});

describe("connections", () => {
  const dane = (data: Buffer, names = ["mx.test"]): HostSecurity => ({
    tls: "verified",
    dane: { records: [{ usage: 3, selector: 1, matchingType: 1, data }], names },
    policy: "DANE",
  });
  const sts: HostSecurity = { tls: "verified", policy: "MTA-STS, enforced" };
  const testing: HostSecurity = { tls: "opportunistic", policy: "MTA-STS, for testing only" };
  const rows: [string, HostSecurity | undefined][] = [
    ["nothing", undefined],
    ["MTA-STS", sts],
    ["testing", testing],
    ["encrypted", { tls: "encrypted", policy: "DANE" }],
    ["one key", dane(SHA256)],
    ["another key", dane(Buffer.alloc(32, 2))],
    ["another name", dane(SHA256, ["other.test"])],
  ];

  test("separate one host if they differ, and join it if they are equal", () => {
    const keys = rows.map(([, security]) =>
      securityKey({ ...host("mx.test"), ...(security && { security }) }),
    );
    expect(new Set(keys).size).toBe(rows.length);
    expect(securityKey({ ...host("mx.test"), security: dane(Buffer.alloc(32, 1)) })).toBe(keys[4] ?? "");
    expect(keys[0]).toBe("");
  });

  test("join hosts if a name server gives the same records in another order", () => {
    const records = [1, 2].map((octet) => {
      const data = Buffer.alloc(32, octet);
      return { usage: 3, selector: 1, matchingType: 1, data };
    });
    const [one, other] = [records, [...records].reverse()].map((ordered) =>
      securityKey({
        ...host("mx.test"),
        security: { tls: "verified", dane: { records: ordered, names: ["mx.test"] }, policy: "DANE" },
      }),
    );
    expect(one).toBe(other ?? "");
  });

  test("connections do not mix the policies of two domains at one host", async () => {
    const found = await secured(["none.in.test"], policy("enforce", "*.in.test"));
    const [first] = found.kind === "hosts" ? found.hosts : [];
    expect(JSON.stringify(first?.security)).not.toContain("in.test");
  });
});
