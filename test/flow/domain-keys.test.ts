import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rotateDkim } from "../../src/flows/domains/rotate.ts";
import { recheckDue } from "../../src/flows/domains/recheck.ts";
import { listDkimKeys } from "../../src/store/domains/dkim-keys.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { signingKeys } from "../../src/store/messages/sending.ts";
import { around } from "../support/around.ts";
import { SERVICE_DOMAIN, type TestApi, testApi } from "../support/api.ts";

const MINUTE = 60_000;
const WEEK = 7 * 24 * 60 * MINUTE;
const NAME = "news.example.com";

let api: TestApi;
let id: string;
beforeEach(async () => {
  api = await testApi();
  const made = await api.call("POST", "/v1/domains", { body: { domain: NAME } });
  id = made.json.id;
  publish(made.json.records);
  expect((await call("/verify")).json.status).toBe("verified");
});
afterEach(() => api.close());

interface Shown {
  type: string;
  name: string;
  value: string;
  purpose: string;
}

function publish(records: Shown[]): void {
  for (const { type, name, value } of records) api.zone.set(`${type} ${name}`, [value]);
}

const call = (path: string, method = "POST") => api.call(method, `/v1/domains/${id}${path}`);
const selector = async () => (await signingKeys(api.db, api.acme.a.id, NAME))[0]?.selector;
const cnames = (records: Shown[]) =>
  records.filter(({ purpose }) => purpose === "dkim").map(({ name }) => name);

/** Lets the sweep check due domains a minute apart. Returns the minutes until `selector` signs. */
async function minutesUntilSigning(wanted: string, most: number): Promise<number> {
  for (let minutes = 0; minutes <= most; minutes++) {
    await recheckDue(api.domains, 10);
    if ((await selector()) === wanted) return minutes;
    api.clock.advance(MINUTE);
  }
  return Number.POSITIVE_INFINITY;
}

describe("a new DKIM key", () => {
  test("a new DKIM key is searched every five minutes even if the domain is verified, and signs once it is published", async () => {
    const { json } = await call("/rotate-dkim");
    expect(cnames(json.records)).toEqual([`pr1._domainkey.${NAME}`, `pr2._domainkey.${NAME}`]);
    expect(await minutesUntilSigning("pr2", 20)).toBe(Number.POSITIVE_INFINITY);
    expect((await call("", "GET")).json.status).toBe("verified");
    publish(json.records);
    expect(await minutesUntilSigning("pr2", 5)).toBeLessThanOrEqual(5);
    expect(cnames((await call("", "GET")).json.records)).toEqual([`pr2._domainkey.${NAME}`]);
  });

  test("a new DKIM key is searched hourly if its record has not appeared in 48 hours", async () => {
    await call("/rotate-dkim");
    const made = api.clock.now();
    const checkedAt = async (minutes: number) => {
      api.clock.advance(made + minutes * MINUTE - api.clock.now());
      return (await recheckDue(api.domains, 10)) === 1;
    };
    const eager: [number, boolean][] = [
      [4, false],
      [5, true],
      [9, false],
      [10, true],
      [2875, true],
      [2880, true],
    ];
    const hourly: [number, boolean][] = [
      [2885, false],
      [2939, false],
      [2940, true],
      [2999, false],
      [3000, true],
    ];
    for (const [minutes, checked] of [...eager, ...hourly])
      expect([minutes, await checkedAt(minutes)]).toEqual([minutes, checked]);
  });

  test("a new DKIM key under a selector used before signs without a call and without a DNS change", async () => {
    publish((await call("/rotate-dkim")).json.records);
    await call("/verify");
    api.clock.advance(WEEK);
    const before = new Map(api.zone);
    expect((await call("/rotate-dkim")).status).toBe(200);
    expect(await selector()).toBe("pr2");
    // Five minutes: as long as a resolver may remember that the old key was gone.
    expect(await minutesUntilSigning("pr1", 10)).toBe(5);
    expect(api.zone).toEqual(before);
  });

  test("a new DKIM key that is published counts at once, and the old record may disappear at that time", async () => {
    publish((await call("/rotate-dkim")).json.records);
    const before = (await call("", "GET")).json.authHealth;
    api.zone.delete(`CNAME pr1._domainkey.${NAME}`);
    expect((await call("/verify")).json.authHealth).toEqual(before);
    expect(await selector()).toBe("pr2");
  });

  test("a new DKIM key is not made twice within seven days, to the millisecond", async () => {
    publish((await call("/rotate-dkim")).json.records);
    expect((await call("/rotate-dkim")).json.error.code).toBe("invalid_state");
    await call("/verify");
    api.clock.advance(WEEK - 1);
    expect((await call("/rotate-dkim")).json.error.code).toBe("invalid_state");
    api.clock.advance(1);
    expect((await call("/rotate-dkim")).status).toBe(200);
  });

  test("a new DKIM key is not stored if its domain is deleted during the rotation", async () => {
    const racing: Db = {
      ...around(api.db),
      async write(statements) {
        expect((await call("", "DELETE")).status).toBe(204);
        return api.db.write(statements);
      },
    };
    const rotation = { senderId: api.acme.a.id, id, now: api.clock.now(), also: () => [] };
    const refused = await rotateDkim({ ...api.domains, db: racing }, rotation).catch((error) => error);
    expect(refused).toMatchObject({ type: "not_found" });
  });

  test("a new DKIM key whose token was another's label does not sign while the zone still has that other key", async () => {
    publish((await call("/rotate-dkim")).json.records);
    await call("/verify");
    api.clock.advance(WEEK);
    await call("/rotate-dkim");
    // A zone published by hand and not updated since the rotation: the alias is right, but the key is the old one.
    api.zone.set(`TXT pr1._domainkey.${NAME}`, ["v=DKIM1; k=rsa; p=MIIBold"]);
    const waiting = (await call("/verify")).json;
    expect([waiting.status, await selector()]).toEqual(["verified", "pr2"]);
    const keys = await listDkimKeys(api.db, api.acme.a.id, id);
    const made = keys.find(({ status }) => status === "pending");
    api.zone.set(`TXT pr1._domainkey.${NAME}`, [`v=DKIM1; k=rsa; p=${made?.publicKey}`]);
    await call("/verify");
    expect(await selector()).toBe("pr1");
  });
});

describe("a name that changes its owner", () => {
  const receiving = (of: string, key: string, enabled = true) =>
    api.call("PATCH", `/v1/domains/${of}/receiving`, { body: { enabled }, key });

  test("a name that changes its owner stays with the former owner until it has failed for 72 hours, and then belongs to the next verified one", async () => {
    const { a: old } = api.acme;
    const { a: heir } = api.other;
    expect((await receiving(id, old.key)).status).toBe(200);
    const made = await api.call("POST", "/v1/domains", { body: { domain: NAME }, key: heir.key });
    expect((await receiving(made.json.id, heir.key)).json.error.code).toBe("invalid_state");
    publish(made.json.records);
    await api.call("POST", `/v1/domains/${made.json.id}/verify`, { key: heir.key });
    await call("/verify");
    expect((await receiving(made.json.id, heir.key)).json.error.code).toBe("duplicate");
    api.clock.advance(72 * 60 * MINUTE);
    expect((await call("/verify")).json.status).toBe("pending");
    // Failing alone takes nothing from the former owner, until another owner has proved the name.
    expect((await call("/receiving", "GET")).json.enabled).toBe(true);
    expect((await receiving(made.json.id, heir.key)).json.enabled).toBe(true);
    expect((await call("/receiving", "GET")).json.enabled).toBe(false);
    expect((await receiving(id, old.key)).json.error.code).toBe("invalid_state");
  });

  test("a name that changes its owner is not taken by an unverified owner, nor by disabling receiving", async () => {
    const { a: old } = api.acme;
    await receiving(id, old.key);
    api.zone.clear();
    await call("/verify");
    api.clock.advance(72 * 60 * MINUTE);
    expect((await call("/verify")).json.status).toBe("pending");
    const made = await api.call("POST", "/v1/domains", { body: { domain: NAME }, key: api.other.a.key });
    expect((await receiving(made.json.id, api.other.a.key)).status).toBe(409);
    expect((await receiving(made.json.id, api.other.a.key, false)).status).toBe(200);
    expect((await call("/receiving", "GET")).json.enabled).toBe(true);
  });
});

test("records name the service's zone exactly as decided, in that order", async () => {
  const { json } = await call("", "GET");
  const shape = json.records.map(({ type, name, purpose }: Shown) => [type, name, purpose]);
  expect(shape).toEqual([
    ["CNAME", `pr1._domainkey.${NAME}`, "dkim"],
    ["TXT", NAME, "spf"],
    ["TXT", `_dmarc.${NAME}`, "dmarc"],
  ]);
  expect((await call("/receiving", "GET")).json.records).toEqual([
    {
      type: "MX",
      name: NAME,
      value: `mx.${SERVICE_DOMAIN}`,
      priority: 10,
      purpose: "inbound",
      verified: false,
    },
  ]);
});
