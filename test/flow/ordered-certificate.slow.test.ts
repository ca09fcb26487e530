import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { systemClock } from "../../src/clock.ts";
import { fetchStsPolicy } from "../../src/net/mta-sts-fetch.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { type Pebble, PEBBLE_MISSING, problem, startPebble } from "../support/pebble.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

// The whole service: pebble asks its name server, and clients meet the certificate that pebble has issued.

const LIMIT_MS = 60_000;
/** Timers run so much faster than the system's, so that an order takes a second. */
const HURRY = 10;
const MX = `mx.${SERVICE_DOMAIN}`;
const MAIN = join(import.meta.dir, "../../src/main.ts");

describe.skipIf(PEBBLE_MISSING !== null)(titled("a service with ACME_EMAIL", PEBBLE_MISSING), () => {
  const dnsPort = freePort();
  let pebble: Pebble;
  let service: TestService;
  let root: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    pebble = await startPebble({ dnsPort });
    pebble.rewrite(async ({ path }, response) =>
      path === "/dir"
        ? Response.json({ ...((await response.json()) as object), meta: { caaIdentities: ["pebble.test"] } })
        : response,
    );
    root = await pebble.root();
    pebble.fault(({ path }) =>
      path === "/order-plz" ? problem(400, "rejectedIdentifier", "not yet") : null,
    );
    env = {
      ACME_EMAIL: "operator@example.com",
      ACME_DIRECTORY: pebble.directory,
      ACME_CA_FILE: pebble.caFile,
      DNS_HOST: "127.0.0.1",
      DNS_PORT: String(dnsPort),
      DNS_SERVERS: `127.0.0.1:${dnsPort}`,
      TLS_PORT: "0",
      PUBLIC_IPS: "127.0.0.1",
      PUBLIC_URL: `https://api.${SERVICE_DOMAIN}`,
    };
    service = await startService(env, hurried(HURRY));
  }, LIMIT_MS);
  afterAll(async () => {
    await service?.stop();
    await pebble?.stop();
  });

  const health = async () =>
    (await service.call("GET", "/v1/health", undefined, { key: service.accountKey })).body;
  const certificate = async () => (await health()).certificates[0];
  const line = async () =>
    (await health()).checks.find(({ name }: { name: string }) => name === "certificate");

  const isNoticed = async () =>
    (await service.call("GET", "/v1/notices?ended=false", undefined, { key: service.accountKey })).body.data
      .find(({ kind }: { kind: string }) => kind === "certificate_failing")
      ?.message.includes("rejectedIdentifier: not yet") === true;

  /** The certificate that TLS_PORT shows for a name; null if the root of pebble does not lead to it. */
  function shown(servername: string): Promise<TLSSocket | null> {
    return new Promise((resolve) => {
      const socket = connect(
        { host: "127.0.0.1", port: service.app.ports.tls ?? 0, servername, ca: root },
        () => resolve(socket),
      );
      socket.on("error", () => resolve(null));
    });
  }

  test("explains why it has no certificate, and uses its own until then", async () => {
    await until(async () => (await certificate())?.lastError !== null && (await line()).status === "fail");
    expect(await certificate()).toMatchObject({
      names: [SERVICE_DOMAIN, MX, `mta-sts.${SERVICE_DOMAIN}`, `api.${SERVICE_DOMAIN}`],
      source: "self-signed",
      expiresAt: null,
      lastError: { message: "rejectedIdentifier: not yet" },
    });
    expect((await line()).message).toContain("rejectedIdentifier: not yet");
    expect((await line()).fix).toContain("It is tried again at ");
    expect(await shown(MX)).toBeNull();
  });

  test("raises a notice with the CA's reason", () => until(isNoticed));

  test("gets one at once if it is told to retry and the CA lets it, and shows it at TLS_PORT and the SMTP port without a restart", async () => {
    pebble.fault(null);
    const settings = { ...env, SERVICE_DOMAIN, ...service.sameDatabase };
    const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    const { output } = await run(["env", ...words, process.execPath, MAIN, "certificates", "--retry"]);
    expect(JSON.parse(output)).toMatchObject({
      names: expect.arrayContaining([MX]),
      source: "self-signed",
      expiresAt: null,
      lastError: "rejectedIdentifier: not yet",
    });
    await until(async () => {
      const socket = await shown(`api.${SERVICE_DOMAIN}`);
      socket?.destroy();
      return socket !== null;
    });
    const name = await new Promise<string>((resolve, reject) => {
      const plain = connectTcp(service.smtpPort, "127.0.0.1");
      const script = ["EHLO x\r\n", "STARTTLS\r\n"];
      plain.on("error", reject);
      plain.on("data", (chunk) => {
        if (!/^\d{3} .*\r\n$/m.test(chunk.toString())) return;
        const next = script.shift();
        if (next !== undefined) return void plain.write(next);
        plain.removeAllListeners("data");
        const secure = connect({ socket: plain, servername: MX, ca: root }, () => {
          resolve(secure.getPeerCertificate().subjectaltname ?? "");
          secure.destroy();
        });
        secure.on("error", reject);
      });
    });
    expect(name).toContain(`DNS:${MX}`);
    await until(async () => (await line()).status === "ok");
    expect(await certificate()).toMatchObject({ source: "acme", lastError: null });
  });

  test("ends the notice once it has one", () => until(async () => !(await isNoticed())));

  test("announces its MTA-STS policy, which a sender fetches and verifies", async () => {
    const resolver = createResolver(
      { clock: systemClock },
      { servers: [{ ip: "127.0.0.1", port: dnsPort }] },
    );
    const deps = { clock: systemClock, resolver, mayReach: () => true, ca: root };
    const options = { port: service.app.ports.tls ?? 0, allowPrivate: true };
    await until(async () => (await fetchStsPolicy(deps, SERVICE_DOMAIN, options)).kind === "policy");
    expect(await fetchStsPolicy(deps, SERVICE_DOMAIN, options)).toMatchObject({
      policy: { mode: "enforce", mx: [MX] },
    });
    const elsewhere = await service.call("GET", "/.well-known/mta-sts.txt");
    expect(elsewhere.status).toBe(404);
  });

  const DIG = toolMissing("dig");
  test.skipIf(DIG !== null)(titled("answers dig with the records of the certificate", DIG), async () => {
    const dig = async (name: string, type: string) =>
      (await run(["dig", "+norec", "+short", "-p", String(dnsPort), "@127.0.0.1", name, type])).output.trim();
    expect(await dig(`_25._tcp.${MX}`, "TLSA")).toBe("");
    expect(await dig(SERVICE_DOMAIN, "CAA")).toBe('0 issue "pebble.test"');
    expect(await dig(`_mta-sts.${SERVICE_DOMAIN}`, "TXT")).toMatch(/^"v=STSv1; id=[0-9a-f]{16};"$/);
    expect(await dig(SERVICE_DOMAIN, "A")).toBe("127.0.0.1");
    expect(await dig(`_acme-challenge.${MX}`, "TXT")).toBe("");
  });
});
