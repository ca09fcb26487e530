import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import { runHealth } from "../../src/flows/health/check.ts";
import { noticeChecks, secondaryChecks } from "../../src/flows/health/secondaries.ts";
import { zoneSerial } from "../../src/store/domains/zones.ts";
import { run, startUnbound, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { freePort } from "../support/redis.ts";
import { until } from "../support/poll.ts";
import {
  SECONDARY_PROGRAMS,
  type SecondaryProgram,
  startSecondary,
  type TestKey,
  type TestSecondary,
} from "../support/secondaries.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

/** Milliseconds: both programs take their time to start, and notices are repeated after seconds. */
setDefaultTimeout(90_000);

/** Timers run so much faster than the system's, because notices wait and are repeated after seconds. */
const HURRY = 5;

const DOMAIN = "news.customer.test";
const LATER = "later.customer.test";
const ZONES = [SERVICE_DOMAIN, DOMAIN, LATER];
const SECOND = "ns2.example.net";

const secretOf = (text: string) => Buffer.from(text.repeat(8)).toString("base64");
const KEYS: Readonly<Record<SecondaryProgram, TestKey>> = {
  nsd: { name: "to-nsd", secret: secretOf("nsd!") },
  knot: { name: "to-knot", secret: secretOf("knot") },
};
const PORTS = { nsd: freePort(), knot: freePort() };
/** A key that no secondary has. */
const SPARE: TestKey = { name: "spare", secret: secretOf("more") };

const MISSING = toolMissing("nsd", "knotd", "dig", "kdig", "named-checkzone");

let settings: Record<string, string>;
let service: TestService;
let secondaries: Record<SecondaryProgram, TestSecondary>;
let primary: number;
let id: string;
/** The name of our name server for each delegated domain. */
const ours = new Map<string, string>();

const start = (program: SecondaryProgram): TestSecondary =>
  startSecondary(program, { port: PORTS[program], primary, key: KEYS[program], zones: ZONES });

describe.skipIf(MISSING !== null)(titled("nsd and knot as secondaries", MISSING), () => {
  beforeAll(async () => {
    primary = freePort();
    const keys = [...Object.values(KEYS), SPARE];
    settings = {
      SERVICE_DOMAIN,
      DNS_HOST: "127.0.0.1",
      DNS_PORT: String(primary),
      PUBLIC_IPS: "192.0.2.10,2001:db8::10",
      DNS_SECONDARIES: SECONDARY_PROGRAMS.map((name) => `127.0.0.1:${PORTS[name]}#${KEYS[name].name}`).join(),
      DNS_TSIG_KEYS: keys.map(({ name, secret }) => `${name}:hmac-sha256:${secret}`).join(),
      DNS_SECONDARY_NAMES: SECOND,
    };
    service = await startService(settings, hurried(HURRY));
    id = await delegated(DOMAIN);
    secondaries = { nsd: start("nsd"), knot: start("knot") };
  });
  afterAll(async () => {
    await Promise.all(Object.values(secondaries ?? {}).map((one) => one.stop()));
    await service?.stop();
  });

  /** Registers a domain that the zone above delegates to us and to the secondaries. Returns its id. */
  async function delegated(domain: string): Promise<string> {
    const { status, body } = await service.call("POST", "/v1/domains", { domain, delegated: true });
    expect(status).toBe(201);
    const [first, second] = body.delegation.records.map(({ value }: { value: string }) => value);
    expect([first, second]).toEqual([expect.stringMatching(/^[0-9a-z]{26}\.ns\.mail\.test$/), SECOND]);
    ours.set(domain, first);
    service.dns.add(...[first, second].map((data) => ({ name: domain, type: "NS" as const, data })));
    await service.call("POST", `/v1/domains/${body.id}/verify`);
    return body.id;
  }

  /** Waits until both serve that answer. */
  async function untilServed(name: string, type: string, answer: readonly string[]): Promise<void> {
    for (const program of SECONDARY_PROGRAMS)
      await until(async () => Bun.deepEquals(await secondaries[program].ask(name, type), answer));
  }

  /** Returns the lines of a transfer that a program prints. */
  async function transferred(zone: string, key: TestKey, command = ["dig"]): Promise<string[]> {
    const { output } = await run([
      ...command,
      "+noall",
      "+answer",
      "-y",
      `hmac-sha256:${key.name}:${key.secret}`,
      "-p",
      String(primary),
      "@127.0.0.1",
      zone,
      "AXFR",
    ]);
    return output
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.replaceAll(/[\t ]+/g, " "));
  }

  test("copy the service's zone and a delegated one, and serve every record of them", async () => {
    for (const zone of [SERVICE_DOMAIN, DOMAIN]) {
      const first = ours.get(zone) ?? `ns.${SERVICE_DOMAIN}`;
      await untilServed(zone, "NS", [`${first}.`, `${SECOND}.`].sort());
      const records = await transferred(zone, KEYS.nsd);
      expect(records.length).toBeGreaterThan(5);
      for (const line of records) {
        const [name = "", , , type = "", ...data] = line.split(" ");
        if (type === "SOA") continue;
        for (const program of SECONDARY_PROGRAMS)
          expect([program, line, await secondaries[program].ask(name, type)]).toEqual([
            program,
            line,
            expect.arrayContaining([data.join(" ")]),
          ]);
      }
    }
  });

  test("have the same serial as the primary, which stands still without a change", async () => {
    const soa = await run(["dig", "+short", "+norec", "-p", String(primary), "@127.0.0.1", DOMAIN, "SOA"]);
    await untilServed(DOMAIN, "SOA", [soa.output.trim()]);
  });

  test("dig and kdig transfer a zone that named-checkzone accepts", async () => {
    for (const zone of [SERVICE_DOMAIN, DOMAIN]) {
      const byDig = await transferred(zone, KEYS.nsd);
      expect((await transferred(zone, KEYS.nsd, ["kdig"])).sort()).toEqual([...byDig].sort());
      const file = join(service.folder, "transferred");
      await Bun.write(file, `${byDig.join("\n")}\n`);
      const checked = await run(["named-checkzone", "-i", "local", zone, file]);
      expect(checked.output.trim().split("\n")).toEqual([expect.stringContaining("loaded serial"), "OK"]);
    }
  });

  test("a record of the owner's, a key and a switch of receiving arrive at both", async () => {
    const name = `www.${DOMAIN}`;
    const made = await service.call("POST", `/v1/domains/${id}/records`, {
      type: "A",
      name,
      value: "192.0.2.7",
    });
    expect(made.status).toBe(201);
    await untilServed(name, "A", ["192.0.2.7"]);
    await service.call("DELETE", `/v1/domains/${id}/records/${made.body.id}`);
    await untilServed(name, "A", []);
    // A domain that is registered has its key in the service's zone.
    const other = await service.call("POST", "/v1/domains", { domain: "plain.test" });
    const target = other.body.records[0].value;
    for (const program of SECONDARY_PROGRAMS)
      await until(async () => (await secondaries[program].ask(target, "TXT")).length === 1);
  });

  test("a domain that is delegated later arrives, and one that is no longer delegated is refused", async () => {
    const later = await delegated(LATER);
    await untilServed(LATER, "NS", [`${ours.get(LATER)}.`, `${SECOND}.`].sort());
    expect((await service.call("DELETE", `/v1/domains/${later}`)).status).toBe(204);
    await until(async () => (await transferred(LATER, KEYS.knot)).join().includes("Transfer failed"));
  });

  test("a secondary that was away gets the notice later", async () => {
    await secondaries.knot.stop();
    const name = `later.${DOMAIN}`;
    await service.call("POST", `/v1/domains/${id}/records`, { type: "A", name, value: "192.0.2.8" });
    await until(async () => Bun.deepEquals(await secondaries.nsd.ask(name, "A"), ["192.0.2.8"]));
    secondaries.knot = start("knot");
    await untilServed(name, "A", ["192.0.2.8"]);
    await until(async () => (await service.app.db.first("SELECT 1 FROM zone_notices LIMIT 1")) === null);
  });

  test("only a secondary with its key gets a zone", async () => {
    const failed = [expect.stringContaining("Transfer failed.")];
    const refused = async (key: TestKey): Promise<string> => (await transferred(DOMAIN, key)).join("\n");
    expect(await refused({ ...KEYS.nsd, secret: SPARE.secret })).toContain("tsig indicates error");
    expect(await refused({ ...KEYS.nsd, name: "unknown" })).toContain("tsig indicates error");
    // A valid key of no secondary.
    expect(await transferred(DOMAIN, SPARE)).toEqual(failed);
    const unsigned = await run(["dig", "-p", String(primary), "@127.0.0.1", DOMAIN, "AXFR"]);
    expect(unsigned.output).toContain("Transfer failed.");
    const foreign = await run([
      "dig",
      "-y",
      `hmac-sha256:${KEYS.nsd.name}:${KEYS.nsd.secret}`,
      "-b",
      "127.0.0.2",
      "-p",
      String(primary),
      "@127.0.0.1",
      DOMAIN,
      "AXFR",
    ]);
    expect(foreign.output).toContain("Transfer failed.");
    const nowhere = await transferred("example.org", KEYS.nsd);
    expect(nowhere).toEqual(failed);
  });

  test("unbound resolves through a secondary alone", async () => {
    if (toolMissing("unbound") !== null) return;
    for (const program of SECONDARY_PROGRAMS) {
      const unbound = await startUnbound({ [DOMAIN]: PORTS[program] });
      const at = ["dig", "-p", String(unbound.port), "@127.0.0.1"];
      expect((await run([...at, DOMAIN, "TXT"])).output).toMatch(/NOERROR.*v=spf1/s);
      expect((await run([...at, `none.${DOMAIN}`, "A"])).output).toContain("NXDOMAIN");
      await unbound.stop();
    }
  });

  test("doctor says which version each serves, and how to repair one that is away", async () => {
    const { dnsSecondaries } = loadConfig(settings);
    const parts = { db: () => service.app.db, clock: systemClock };
    const lines = async (more = dnsSecondaries) => {
      const all = { ...loadConfig(settings), dnsSecondaries: more };
      return runHealth(systemClock, secondaryChecks({ ...parts, settings: all }));
    };
    const serial = await zoneSerial(service.app.db, SERVICE_DOMAIN);
    const says = (message: string) => ({ status: "ok", message: expect.stringContaining(message) });
    expect(await lines()).toMatchObject(Array(2).fill(says(`version ${serial} of ${SERVICE_DOMAIN}`)));
    await secondaries.knot.stop();
    const away = { status: "fail", message: expect.stringContaining("does not answer") };
    expect((await lines())[1]).toMatchObject(away);
    // GET /v1/health asks no other server, and knows that from the notices.
    const notices = () =>
      runHealth(systemClock, noticeChecks({ db: parts.db, settings: loadConfig(settings) }));
    await service.call("POST", `/v1/domains/${id}/records`, { type: "A", name: DOMAIN, value: "192.0.2.9" });
    await until(async () => (await notices()).some(({ status }) => status === "warn"));
    expect(await notices()).toMatchObject([
      { status: "ok" },
      {
        status: "warn",
        message: expect.stringMatching(/For news.customer.test, it (cannot be reached|does not answer)/),
      },
    ]);
  });
});
