import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { unseal } from "../../src/core/crypto/secretbox.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/core/time/units.ts";
import { CLAIM_MS } from "../../src/flows/certificates/renew.ts";
import { createAcmeClient } from "../../src/net/acme/client.ts";
import { certificateId } from "../../src/net/acme/certificate-id.ts";
import { readAccountKey } from "../../src/net/acme/jws.ts";
import { MAX_NONCE_TRIES } from "../../src/net/acme/signed-requests.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { type CertificateRecord, findAcmeAccount } from "../../src/store/domains/certificates.ts";
import type { Db } from "../../src/store/engine/client.ts";
import {
  hasFailed,
  type Installation,
  installation,
  isIssued,
  SERVICE_DOMAIN,
  watchedDb,
} from "../support/acme.ts";
import { BOX_KEY } from "../support/api.ts";
import { titled } from "../support/dns-tools.ts";
import {
  type CaRequest,
  EXTERNAL,
  type Pebble,
  PEBBLE_MISSING,
  problem,
  startPebble,
  verifyChain,
} from "../support/pebble.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";

// Debian's pebble, our own name server over UDP, and a database file. Faults are made between the two.

const LIMIT_MS = 60_000;
const NAMES = [SERVICE_DOMAIN, `mx.${SERVICE_DOMAIN}`, `mta-sts.${SERVICE_DOMAIN}`];
const ORDERS = "/order-plz";
const ACCOUNTS = "/sign-me-up";

/** Returns what a request signs. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the client sends.
function payloadOf({ body }: CaRequest): any {
  const { payload } = JSON.parse(body);
  return payload === "" ? null : JSON.parse(Buffer.from(payload, "base64url").toString());
}

function leafOf({ issued }: CertificateRecord): X509Certificate {
  return new X509Certificate(issued?.chain ?? "");
}

const serialOf = (record: CertificateRecord): string => leafOf(record).serialNumber;
const isRenewed = (earlier: CertificateRecord) => (record: CertificateRecord) =>
  isIssued(record) && serialOf(record) !== serialOf(earlier);

describe.skipIf(PEBBLE_MISSING !== null)(titled("a certificate", PEBBLE_MISSING), () => {
  const dnsPort = freePort();
  let pebble: Pebble;
  let one: Installation;
  /** If set, the name server's reads of challenges wait for it. */
  let gate: Promise<void> | null = null;
  let asked = 0;

  const gated = (db: Db): Db =>
    watchedDb(db, async () => {
      asked++;
      await gate;
    });
  const sent = (path: string): CaRequest[] => pebble.requests.filter((request) => request.path === path);
  /** Makes the certificate due for renewal. */
  const expireSoon = () =>
    one.db.write([{ sql: "UPDATE certificates SET renew_at = 0, due_at = 0", args: [] }]);

  beforeAll(async () => {
    pebble = await startPebble({ dnsPort });
  }, LIMIT_MS);
  afterAll(() => pebble?.stop());
  beforeEach(async () => {
    gate = null;
    pebble.requests.length = 0;
    one = await installation(dnsPort, gated);
    // The CA's clock goes with ours.
    pebble.clock(() => one.clock.now());
    await one.keyed(pebble);
  });
  afterEach(async () => {
    pebble.fault(null);
    pebble.rewrite(null);
    await one.stop();
  });

  test("is issued for all our names, verifies with openssl, and leaves no secret and no challenge readable", async () => {
    await one.db.write([{ sql: "DELETE FROM certificates", args: [] }]);
    const record = await one.until(one.renewal(pebble), isIssued);
    expect(await verifyChain(record.issued?.chain ?? "", await pebble.root())).toEndWith(": OK");
    for (const name of NAMES) expect(leafOf(record).checkHost(name)).toBe(name);
    expect(await one.db.all("SELECT * FROM acme_challenges")).toEqual([]);
    const stored = JSON.stringify([
      await one.db.all("SELECT private_key, order_key FROM certificates"),
      await one.db.all("SELECT private_key FROM acme_accounts"),
    ]);
    expect(stored).not.toContain("PRIVATE KEY");
    expect(unseal(BOX_KEY, record.issued?.sealedKey ?? "")).toContain("PRIVATE KEY");
    expect(sent(ORDERS)).toHaveLength(1);
  });

  test("is renewed at a third of its lifetime left, with the key of the one before", async () => {
    const turn = one.renewal(pebble);
    const first = await one.until(turn, isIssued);
    const leaf = leafOf(first);
    const [from, to] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
    expect(Math.abs((first.renewAt ?? 0) - (to - (to - from) / 3))).toBeLessThan(1000);
    one.clock.shift((first.renewAt ?? 0) - one.clock.now() - DAY_MS);
    await turn();
    expect(serialOf(await one.record())).toBe(serialOf(first));
    one.clock.shift(2 * DAY_MS);
    const second = await one.until(turn, isRenewed(first));
    const [key, next] = [first, second].map((record) => leafOf(record).publicKey);
    expect(next?.equals(key ?? leafOf(first).publicKey)).toBe(true);
    // Peers may still rely on the key that they know.
    expect(second.issued?.servedFrom).toBe(first.issued?.servedFrom ?? 0);
  });

  test("is renewed within the window that the CA wants, names the one it replaces, and is ordered without that if the CA refuses the name", async () => {
    let [start, end] = [one.clock.now() + 10 * DAY_MS, one.clock.now() + 12 * DAY_MS];
    const asked: string[] = [];
    pebble.rewrite(async ({ path }, response) =>
      path === "/dir"
        ? Response.json({ ...((await response.json()) as object), renewalInfo: `${pebble.directory}/ari` })
        : response,
    );
    pebble.fault(({ path, method }) => {
      if (method !== "GET" || !path.startsWith("/dir/ari/")) return null;
      asked.push(path.slice("/dir/ari/".length));
      const suggestedWindow = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
      return Response.json({ suggestedWindow }, { headers: { "retry-after": "21600" } });
    });
    const turn = one.renewal(pebble);
    const first = await one.until(turn, isIssued);
    expect(asked).toEqual([certificateId(leafOf(first).raw) ?? ""]);
    expect(first.renewAt).toBeGreaterThanOrEqual(start);
    expect(first.renewAt).toBeLessThanOrEqual(end);
    expect(Math.abs(first.dueAt - one.clock.now() - 6 * HOUR_MS)).toBeLessThan(MINUTE_MS);
    // The CA revokes it, and wants it to be renewed at once. A certificate that was issued just now waits an hour.
    [start, end] = [one.clock.now() - DAY_MS, one.clock.now() - HOUR_MS];
    await one.db.write([{ sql: "UPDATE certificates SET due_at = 0, issued_at = 1", args: [] }]);
    const second = await one.until(turn, isRenewed(first));
    expect(payloadOf(sent(ORDERS)[1] as CaRequest).replaces).toBe(asked[0] ?? "");
    pebble.fault((request) =>
      request.path === ORDERS && payloadOf(request).replaces !== undefined
        ? problem(409, "alreadyReplaced", "the certificate has a replacement")
        : null,
    );
    await expireSoon();
    await one.until(turn, isRenewed(second));
    expect(
      sent(ORDERS)
        .slice(2)
        .map((request) => payloadOf(request).replaces !== undefined),
    ).toEqual([true, false]);
  });

  test("is issued while the CA refuses a third of the nonces that it gave", async () => {
    const other = await startPebble({ dnsPort, badNonces: 33 });
    await one.until(one.renewal(other), isIssued);
    expect(other.requests.length).toBeGreaterThan(18);
    await other.stop();
  });

  test("is tried again after seconds, then after twice as long, if the CA takes none of its own nonces", async () => {
    pebble.fault(({ path }) => (path === ORDERS ? problem(400, "badNonce", "an old nonce") : null));
    const turn = one.renewal(pebble);
    for (const [failures, pause] of [
      [1, 15 * SECOND_MS],
      [2, 30 * SECOND_MS],
    ] as const) {
      const record = await one.until(turn, (now) => now.failures === failures);
      expect(record.lastError?.text).toBe("the CA takes none of its own nonces");
      expect(sent(ORDERS)).toHaveLength(failures * MAX_NONCE_TRIES);
      expect(Math.abs(record.dueAt - one.clock.now() - pause)).toBeLessThan(5 * SECOND_MS);
      one.clock.shift(record.dueAt - one.clock.now());
    }
    pebble.fault(null);
    expect((await one.until(turn, isIssued)).lastError).toBeNull();
  });

  test("is issued although our name server answers the CA late", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gate = promise;
    asked = 0;
    const turn = one.renewal(pebble);
    await one.until(turn, () => asked > 0);
    for (let count = 0; count < 5; count++) {
      await one.db.write([{ sql: "UPDATE certificates SET due_at = 0", args: [] }]);
      await turn();
    }
    expect((await one.record()).lastError).toBeNull();
    resolve();
    await one.until(turn, isIssued);
    expect(sent(ORDERS)).toHaveLength(1);
  });

  test("is not ordered again for at least an hour, then longer, after the CA found no proof, and the error names the host", async () => {
    one.zone.stop();
    const turn = one.renewal(pebble);
    const record = await one.until(turn, hasFailed);
    expect(record.lastError?.text).toContain("the CA refused the order: ");
    expect(record.lastError?.text).toContain(`mx.${SERVICE_DOMAIN}: `);
    expect(record).toMatchObject({ failures: 1, order: null });
    expect(record.dueAt - one.clock.now()).toBeGreaterThan(59 * MINUTE_MS);
    one.clock.shift(HOUR_MS - MINUTE_MS);
    await turn();
    expect(sent(ORDERS)).toHaveLength(1);
    one.clock.shift(2 * MINUTE_MS);
    const again = await one.until(turn, ({ failures }) => failures === 2);
    expect(sent(ORDERS)).toHaveLength(2);
    expect(again.dueAt - one.clock.now()).toBeGreaterThan(119 * MINUTE_MS);
    expect(await one.db.all("SELECT * FROM acme_challenges")).toEqual([]);
  });

  test("waits as long as the CA says at a rate limit, but no longer than a week", async () => {
    const turn = one.renewal(pebble);
    for (const [seconds, waits] of [
      [2 * 86_400, 2 * DAY_MS],
      [90 * 86_400, 7 * DAY_MS],
    ] as const) {
      pebble.fault(({ path }) =>
        path === ORDERS ? problem(429, "rateLimited", "too many", { "retry-after": String(seconds) }) : null,
      );
      const { failures } = await one.record().catch(() => ({ failures: 0 }));
      const record = await one.until(turn, (now) => now.failures > failures);
      expect(record.lastError?.text).toBe("rateLimited: too many");
      expect(Math.abs(record.dueAt - one.clock.now() - waits)).toBeLessThan(MINUTE_MS);
      one.clock.shift(record.dueAt - one.clock.now());
    }
  });

  test.each<[string, () => Response | null, string]>([
    ["a refused name", () => problem(400, "rejectedIdentifier", "not here"), "rejectedIdentifier: not here"],
    ["trouble of the CA", () => problem(500, "serverInternal", "on fire"), "serverInternal: on fire"],
    [
      "an answer in another form",
      () => new Response("<html>", { status: 502 }),
      "the CA answered with status 502",
    ],
    [
      "an endless answer",
      () => new Response("x".repeat(70_000)),
      "sent an answer that is cut short or too long",
    ],
    [
      "an answer without its fields",
      () => Response.json({}, { headers: { location: "x" } }),
      '"authorizations"',
    ],
  ])("keeps %s as its error", async (_what, answer, says) => {
    pebble.fault(({ path }) => (path === ORDERS ? answer() : null));
    const record = await one.until(one.renewal(pebble), hasFailed);
    expect(record.lastError?.text).toContain(says);
    pebble.fault(null);
    one.clock.shift(record.dueAt - one.clock.now());
    await one.until(one.renewal(pebble), isIssued);
  });

  test("comes from a new account if the CA has revoked the old one", async () => {
    const turn = one.renewal(pebble);
    const first = await one.until(turn, isIssued);
    const account = await findAcmeAccount(one.db, pebble.directory);
    await deactivate(account?.sealedKey ?? "", account?.url ?? "");
    await expireSoon();
    const refused = await one.until(turn, hasFailed);
    expect(refused.lastError?.text).toStartWith("unauthorized: ");
    expect(serialOf(refused)).toBe(serialOf(first));
    expect(refused.dueAt - one.clock.now()).toBeGreaterThan(59 * MINUTE_MS);
    one.clock.shift(HOUR_MS);
    await one.until(turn, isRenewed(first));
    expect((await findAcmeAccount(one.db, pebble.directory))?.url).not.toBe(account?.url ?? null);
  });

  async function deactivate(sealedKey: string, url: string): Promise<void> {
    const { clock } = one;
    const resolver = createResolver({ clock }, { servers: [{ ip: "127.0.0.1", port: dnsPort }] });
    const client = createAcmeClient({ clock, resolver, ca: pebble.ca }, pebble.directory);
    await client.deactivate(readAccountKey(unseal(BOX_KEY, sealedKey), url));
  }

  test("is ordered anew if the CA has forgotten account and order", async () => {
    const turn = one.renewal(pebble);
    await one.until(turn, ({ order }) => order !== null);
    await pebble.restart();
    const lost = await one.until(turn, hasFailed);
    expect(lost.lastError?.text).toContain("accountDoesNotExist");
    one.clock.shift(HOUR_MS);
    await one.until(turn, isIssued);
    expect(sent(ACCOUNTS)).toHaveLength(2);
  });

  test.each([400 * DAY_MS, -400 * DAY_MS])(
    "is not ordered while our clock is off by %d ms, and is as soon as it is right",
    async (off) => {
      pebble.clock(null);
      one.clock.shift(off);
      const turn = one.renewal(pebble);
      const record = await one.until(turn, hasFailed);
      const words = off > 0 ? "ahead of" : "behind";
      expect(record.lastError?.text).toContain(`the clock of this machine is 9600 hours ${words} the CA's`);
      expect(sent(ORDERS)).toHaveLength(0);
      one.clock.shift(-off);
      await one.until(turn, isIssued);
    },
  );

  test("needs the external account that the CA wants", async () => {
    const other = await startPebble({ dnsPort, external: true });
    other.clock(() => one.clock.now());
    const record = await one.until(one.renewal(other), hasFailed);
    expect(record.lastError?.text).toContain("externalAccountRequired");
    one.clock.shift(HOUR_MS);
    await one.until(one.renewal(other, { external: EXTERNAL }), isIssued);
    await other.stop();
  });

  test("is ordered again at once for other names, or from another CA", async () => {
    const first = await one.until(one.renewal(pebble), isIssued);
    const names = [...NAMES, `api.${SERVICE_DOMAIN}`];
    const wanted = async () => [{ id: SERVICE_DOMAIN, names }];
    // The zone answers only for hosts of its settings, so the proof for the new name comes from a row of the test.
    pebble.fault(({ path }) => (path === ORDERS ? problem(403, "unauthorized", "seen") : null));
    const asked = await one.until(one.renewal(pebble, { wanted }), hasFailed);
    expect(asked.names).toEqual(names);
    expect(payloadOf(sent(ORDERS).at(-1) as CaRequest).identifiers).toHaveLength(4);
    pebble.fault(null);
    const other = await startPebble({ dnsPort });
    await one.until(one.renewal(other), isRenewed(first));
    expect(await one.record()).toMatchObject({ directory: other.directory, lastError: null });
    await other.stop();
  });

  test("gets another key if the CA refuses the one before", async () => {
    const turn = one.renewal(pebble);
    const first = await one.until(turn, isIssued);
    await expireSoon();
    pebble.fault(({ path }) =>
      path.startsWith("/finalize-order/") ? problem(400, "badPublicKey", "a weak key") : null,
    );
    const refused = await one.until(turn, hasFailed);
    expect(refused.lastError?.text).toBe("badPublicKey: a weak key");
    pebble.fault(null);
    one.clock.shift(HOUR_MS);
    const second = await one.until(turn, isRenewed(first));
    expect(second.issued?.sealedKey).toBe(refused.sealedOrderKey ?? "");
    expect(leafOf(second).publicKey.equals(leafOf(first).publicKey)).toBe(false);
    expect(second.issued?.servedFrom).toBeGreaterThan(one.clock.now());
  });

  test("is no longer renewed once it is not wanted", async () => {
    await one.until(one.renewal(pebble), isIssued);
    await expireSoon();
    const wanted = async () => [{ id: "other.test", names: ["other.test"] }];
    pebble.fault(({ path }) => (path === ORDERS ? problem(403, "rejectedIdentifier", "seen") : null));
    await one.renewal(pebble, { wanted })();
    expect(payloadOf(sent(ORDERS).at(-1) as CaRequest).identifiers).toEqual([
      { type: "dns", value: "other.test" },
    ]);
    expect((await one.record()).lastError).toBeNull();
  });

  test("tells a changed address to the CA", async () => {
    await one.until(one.renewal(pebble), isIssued);
    await expireSoon();
    const first = await one.record();
    await one.until(one.renewal(pebble, { email: "other@example.com" }), isRenewed(first));
    const account = await findAcmeAccount(one.db, pebble.directory);
    const updates = pebble.requests.filter(({ path }) => account?.url?.endsWith(path));
    expect(updates.map(payloadOf)).toEqual([{ contact: ["mailto:other@example.com"] }]);
  });

  test("is ordered once by two processes at a time", async () => {
    const turns = [one.renewal(pebble), one.renewal(pebble)];
    const both = async () => void (await Promise.all(turns.map((turn) => turn())));
    await one.until(both, isIssued);
    expect(sent(ORDERS)).toHaveLength(1);
    expect(sent(ACCOUNTS)).toHaveLength(1);
  });

  test("is issued if the process dies at any request to the CA, whose answer it never reads", async () => {
    // One name, because each further one only repeats its three requests.
    const wanted = async () => [{ id: SERVICE_DOMAIN, names: [SERVICE_DOMAIN] }];
    await one.until(one.renewal(pebble, { wanted }), isIssued);
    const requests = pebble.requests.length;
    for (let at = 1; at <= requests; at++) {
      await one.db.write([
        { sql: "DELETE FROM certificates", args: [] },
        { sql: "DELETE FROM acme_accounts", args: [] },
      ]);
      await one.keyed(pebble);
      pebble.requests.length = 0;
      let dead = false;
      pebble.rewrite((_request, response) => {
        dead ||= pebble.requests.length === at;
        return dead ? new Response(null, { status: 500 }) : response;
      });
      const mortal = one.renewal(pebble, { wanted, db: mortalDb(one.db, () => dead) });
      await one.until(
        () => mortal().catch(() => undefined),
        () => dead,
      );
      pebble.rewrite(null);
      one.clock.shift(CLAIM_MS);
      await one.until(one.renewal(pebble, { wanted }), isIssued);
      // A second one only if the answer with the URL of the first was lost.
      expect(sent(ORDERS).length).toBeLessThanOrEqual(2);
      expect(sent(ACCOUNTS).length).toBeLessThanOrEqual(2);
      expect(await one.record()).toMatchObject({ failures: 0, lastError: null });
    }
  });

  /** The database of a process that does nothing any more once it is dead. */
  function mortalDb(db: Db, isDead: () => boolean): Db {
    return watchedDb(db, () => {
      if (isDead()) throw new Error("dead");
    });
  }

  test("is no longer saved by a process whose claim is over", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let held = false;
    pebble.fault(async ({ path }) => {
      if (path !== ORDERS || held) return null;
      held = true;
      await promise;
      return problem(400, "rejectedIdentifier", "too late");
    });
    const slow = one.renewal(pebble)();
    await until(() => held);
    one.clock.shift(CLAIM_MS);
    await one.until(one.renewal(pebble), isIssued);
    resolve();
    await slow;
    expect(await one.record()).toMatchObject({ lastError: null, failures: 0 });
  });
});
