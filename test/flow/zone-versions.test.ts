import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { decode, encode } from "dns-packet";
import { loadConfig } from "../../src/config.ts";
import { addOwnRecord } from "../../src/flows/zone/add-record.ts";
import { openNotices, openVersions, type SecondarySettings } from "../../src/flows/zone/secondaries.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import { delegatedZones } from "../../src/flows/zone/delegated-zone.ts";
import { ensureInstallationKey } from "../../src/flows/records/keys.ts";
import { NOTIFY_TIMEOUT_MS } from "../../src/net/zone/notify.ts";
import { signatureOf } from "../../src/net/zone/query.ts";
import { signAnswer, type TsigKey, verify } from "../../src/net/zone/tsig.ts";
import { insertChallenge, wantCertificate } from "../../src/store/domains/certificates.ts";
import { failedNotices, zoneSerial } from "../../src/store/domains/zones.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";
import { arrivals, type Arrivals } from "../support/arrivals.ts";

const DOMAIN = "news.example.com";
const KEY: TsigKey = { name: "shared", secret: Buffer.alloc(32, 7) };
const SECOND_MS = 1000;
const WEEK_MS = 7 * 24 * 3_600_000;

let api: TestApi;
let id: string;
let settings: SecondarySettings;
let secondary: FakeSecondary;
/** The turns of one process. */
let versions: () => Promise<void>;

beforeEach(async () => {
  api = await testApi();
  await ensureInstallationKey({ ...api.domains, db: api.db }, api.clock.now());
  secondary = await fakeSecondary();
  settings = {
    ...loadConfig({}),
    serviceDomain: SERVICE_DOMAIN,
    publicIps: ["192.0.2.1"],
    dnsTsigKeys: [KEY],
    dnsHost: ["127.0.0.1"],
    dnsSecondaries: [{ ip: "127.0.0.1", port: secondary.port, keyName: KEY.name }],
  };
  versions = openVersions(api, settings);
  const made = await api.call("POST", "/v1/domains", { body: { domain: DOMAIN, delegated: true } });
  id = made.json.id;
  for (const { name, value } of made.json.delegation.records) api.zone.set(`NS ${name}`, [value]);
  await api.call("POST", `/v1/domains/${id}/verify`);
  await versions();
});
afterEach(async () => {
  secondary.stop();
  await api.close();
});

/** A secondary that answers each notice as the test prescribes. */
interface FakeSecondary {
  port: number;
  notices: Arrivals<Buffer>;
  answer: (packet: Buffer) => Buffer | null;
  stop(): void;
}

async function fakeSecondary(): Promise<FakeSecondary> {
  const notices = arrivals<Buffer>();
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    port: 0,
    binaryType: "buffer",
    socket: {
      data(from, packet: Buffer, port, address) {
        notices.add(Buffer.from(packet));
        const answer = fake.answer(packet);
        if (answer !== null) from.send(answer, port, address);
      },
    },
  });
  const fake: FakeSecondary = {
    port: socket.port,
    notices,
    answer: (packet: Buffer) => signedAnswer(packet),
    stop: () => socket.close(),
  };
  return fake;
}

/** Acknowledges a notice, or refuses it with that code. */
function plainAnswer(packet: Buffer, rcode = 0): Buffer {
  const { id: number, questions } = decode(packet.subarray(0, packet.length));
  const flags = (4 << 11) | rcode;
  return encode({ type: "response", id: number ?? 0, flags, questions: questions ?? [] });
}

function signedAnswer(packet: Buffer, rcode = 0): Buffer {
  const signature = signatureOf(packet);
  if (signature === null) throw new Error("a notice is not signed");
  const now = Math.floor(api.clock.now() / 1000);
  const verdict = verify([KEY], signature, now);
  return signAnswer(plainAnswer(packet, rcode), signature, verdict, now);
}

const serials = async () => [await zoneSerial(api.db, SERVICE_DOMAIN), await zoneSerial(api.db, DOMAIN)];
const path = () => `/v1/domains/${id}`;

/** Does something, makes versions a second later, and returns which zones have another one: service's, delegated. */
async function changed(what: () => Promise<unknown>): Promise<boolean[]> {
  const before = await serials();
  await what();
  api.clock.advance(SECOND_MS);
  await versions();
  const after = await serials();
  for (const [at, serial] of after.entries()) expect(serial).toBeGreaterThanOrEqual(before[at] ?? 0);
  return after.map((serial, at) => serial !== before[at]);
}

describe("a zone gets a version", () => {
  const record = () =>
    addOwnRecord(api.db, {
      senderId: api.acme.a.id,
      domainId: id,
      type: "TXT",
      name: `a.${DOMAIN}`,
      value: "text",
      ttl: undefined,
      priority: undefined,
      now: api.clock.now(),
      also: () => [],
    });
  const rows: [string, () => Promise<unknown>, boolean[]][] = [
    ["not without a change", async () => undefined, [false, false]],
    ["for a record of the owner's", record, [false, true]],
    [
      "for another domain's key",
      () => api.call("POST", "/v1/domains", { body: { domain: "b.example.com" } }),
      [true, false],
    ],
    ["for another key of the domain", () => api.call("POST", `${path()}/rotate-dkim`), [true, true]],
    [
      "for an answer to a challenge",
      () =>
        api.db.write([
          wantCertificate({ id: "service", directory: "https://ca.test", names: [SERVICE_DOMAIN] }, 0),
          insertChallenge("service", `_acme-challenge.${SERVICE_DOMAIN}`, "proof", 1),
        ]),
      [true, false],
    ],
  ];
  test.each(rows)("%s", async (_why, what, which) => {
    expect(await changed(what)).toEqual(which);
  });

  test("when a retired key is no longer published", async () => {
    await api.db.write([
      {
        sql: "UPDATE dkim_keys SET status = 'retired', retire_at = ? WHERE domain_id = ?",
        args: [api.clock.now() + WEEK_MS, id],
      },
    ]);
    await versions();
    api.clock.advance(WEEK_MS);
    expect(await changed(async () => undefined)).toEqual([true, true]);
  });

  test("when a key of its own domain retires, and not when another delegated domain's does", async () => {
    const other = "other.example.com";
    const { json } = await api.call("POST", "/v1/domains", { body: { domain: other, delegated: true } });
    for (const { name, value } of json.delegation.records) api.zone.set(`NS ${name}`, [value]);
    await api.call("POST", `/v1/domains/${json.id}/verify`);
    const retireAt = api.clock.now() + SECOND_MS;
    await api.db.write([
      {
        sql: "UPDATE dkim_keys SET status = 'retired', retire_at = ? WHERE domain_id = ?",
        args: [retireAt, json.id],
      },
      { sql: "UPDATE zones SET due_at = 0", args: [] },
    ]);
    await versions();
    const dueAt = async (zone: string) =>
      (await api.db.first<{ at: number }>("SELECT due_at AS at FROM zones WHERE name = ?", [zone]))?.at ?? 0;
    expect(await dueAt(other)).toBe(retireAt);
    expect(await dueAt(DOMAIN)).toBeGreaterThan(retireAt);
  });

  test("when receiving is switched, and while the clock is set back", async () => {
    await api.db.write([{ sql: "UPDATE domains SET status = 'verified'", args: [] }]);
    api.clock.step(-3_600_000);
    const switched = () => api.call("PATCH", `${path()}/receiving`, { body: { enabled: true } });
    expect(await changed(switched)).toEqual([false, true]);
  });

  test("a zone gets a version after a start with other settings, and none after one with the same", async () => {
    const restarted = (other: SecondarySettings) => async () => {
      versions = openVersions(api, other);
    };
    expect(await changed(restarted(settings))).toEqual([false, false]);
    expect(await changed(restarted({ ...settings, publicIps: ["192.0.2.2"] }))).toEqual([true, false]);
  });

  test("a zone gets no version once it is no longer delegated", async () => {
    await api.call("DELETE", path());
    await versions();
    expect(await zoneSerial(api.db, DOMAIN)).toBe(0);
  });
});

test("every process answers with the stored serial, and with the last one while the database fails", async () => {
  const [own, delegated] = await serials();
  let failing = false;
  const first: typeof api.db.first = (...args) =>
    failing ? Promise.reject(new Error("gone")) : api.db.first(...args);
  const second = {
    clock: api.clock,
    db: { ...api.db, first, all: api.db.all.bind(api.db) } as typeof api.db,
  };
  const zone = await openZone(second, settings);
  const find = delegatedZones(second, settings);
  expect((await zone.soa()).data.serial).toBe(own ?? -1);
  expect((await (await find(DOMAIN))?.zone.soa())?.data.serial).toBe(delegated ?? -1);
  failing = true;
  api.clock.advance(SECOND_MS);
  expect((await zone.soa()).data.serial).toBe(own ?? -1);
});

describe("a notice", () => {
  /** Lets time pass, runs a turn, and returns the number of notices that it sent. */
  async function sentAfter(ms: number, isSilent: boolean): Promise<number> {
    const before = secondary.notices.items.length;
    api.clock.advance(ms);
    const turning = openNotices(api, settings)();
    await Promise.race([turning, secondary.notices.reached(before + 2)]);
    if (isSilent) api.clock.advance(NOTIFY_TIMEOUT_MS);
    await turning;
    return secondary.notices.items.length - before;
  }
  const failure = () => failedNotices(api.db, `127.0.0.1:${secondary.port}`);

  test("a notice names the zone and its serial, and is over when it is acknowledged", async () => {
    await openNotices(api, settings)();
    const notices = secondary.notices.items.map((packet) => decode(packet));
    expect(notices.map(({ questions }) => questions?.[0]?.name).sort()).toEqual(
      [SERVICE_DOMAIN, DOMAIN].sort(),
    );
    const told = notices
      .flatMap(({ answers }) => answers ?? [])
      .map((soa) => soa.type === "SOA" && soa.data.serial);
    expect(told.toSorted()).toEqual((await serials()).toSorted());
    expect(notices.map(({ flags = 0 }) => (flags >> 11) & 15)).toEqual([4, 4]);
    await openNotices(api, settings)();
    expect(secondary.notices.items).toHaveLength(2);
    expect(await failure()).toBeNull();
  });

  test("a notice is repeated with growing pauses until it is acknowledged", async () => {
    secondary.answer = () => null;
    expect(await sentAfter(0, true)).toBe(2);
    expect(await failure()).toMatchObject({ count: 2, error: "it does not answer" });
    expect(await sentAfter(5000, true)).toBe(2);
    expect(await sentAfter(5000, true)).toBe(0);
    expect(await sentAfter(5000, true)).toBe(2);
    secondary.answer = (packet) => signedAnswer(packet);
    expect(await sentAfter(900_000, false)).toBe(2);
    expect(await sentAfter(900_000, false)).toBe(0);
    expect(await failure()).toBeNull();
  });

  const rows: [string, (packet: Buffer) => Buffer, RegExp][] = [
    ["an answer without signature", (packet) => plainAnswer(packet), /not signed/],
    ["a refusal", (packet) => signedAnswer(packet, 5), /refuses the notice/],
    ["a zone that it does not have", (packet) => signedAnswer(packet, 9), /does not have the zone/],
    [
      "a key that it does not know",
      (packet) => {
        const signature = signatureOf(packet);
        if (signature === null) throw new Error("not signed");
        return signAnswer(plainAnswer(packet, 9), signature, verify([], signature, 0), 0);
      },
      /does not know the key/,
    ],
  ];
  test.each(rows)("a notice counts %s as a failure, with the reason", async (_what, answer, reason) => {
    secondary.answer = answer;
    await openNotices(api, settings)();
    expect((await failure())?.error).toMatch(reason);
  });

  test("a version made while a notice is in flight gets a notice as well", async () => {
    secondary.answer = () => null;
    const turning = openNotices(api, settings)();
    await secondary.notices.reached(2);
    await changed(() => api.call("POST", `${path()}/rotate-dkim`));
    secondary.answer = (packet) => signedAnswer(packet);
    api.clock.advance(NOTIFY_TIMEOUT_MS);
    await turning;
    await openNotices(api, settings)();
    expect(secondary.notices.items.length).toBe(4);
  });
});
