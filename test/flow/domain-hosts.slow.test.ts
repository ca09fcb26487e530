import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { request as httpsRequest } from "node:https";
import { connect, type TLSSocket } from "node:tls";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import { runHealth } from "../../src/flows/health/check.ts";
import { tlsPortChecks } from "../../src/flows/health/tls-port.ts";
import { fetchStsPolicy } from "../../src/net/mta-sts-fetch.ts";
import { joinedStrings } from "../../src/net/dns/lookups.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { run, startUnbound, type TestUnbound, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { type Pebble, PEBBLE_MISSING, startPebble } from "../support/pebble.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

// A delegated domain from its registration to mail in both directions. unbound resolves every name, for the service, for the
// CA and for the test, and pebble issues the certificates.

const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
/** Timers run so much faster than the system's, so that orders take seconds. */
const HURRY = 10;
const DOMAIN = "news.customer.test";
/** A domain that is deleted later. */
const GONE = "gone.customer.test";
const RECIPIENT = "reader.test";
const [LINKS, STS] = [`links.${DOMAIN}`, `mta-sts.${DOMAIN}`];
const PUBLIC_URL = `https://api.${SERVICE_DOMAIN}`;
const MISSING = PEBBLE_MISSING ?? toolMissing("unbound", "dig");

describe.skipIf(MISSING !== null)(titled("a delegated domain with hosts", MISSING), () => {
  const dnsPort = freePort();
  const clock = hurried(HURRY);
  let world: TestDns;
  let unbound: TestUnbound;
  let pebble: Pebble;
  let peer: TestMx;
  let service: TestService;
  let env: Record<string, string>;
  let resolver: Resolver;
  let root: string;
  let id: string;
  let gone: string;
  /** Failed orders that were made due again, by id and time. */
  const retried = new Set<string>();

  beforeAll(async () => {
    world = await startDns(
      { name: RECIPIENT, type: "MX", data: { preference: 10, exchange: `mx.${RECIPIENT}` } },
      { name: `mx.${RECIPIENT}`, type: "A", data: "127.0.0.1" },
    );
    unbound = await startUnbound({
      [DOMAIN]: dnsPort,
      [GONE]: dnsPort,
      [SERVICE_DOMAIN]: dnsPort,
      test: world.port,
    });
    pebble = await startPebble({ dnsPort: unbound.port });
    peer = startMx();
    env = {
      ACME_EMAIL: "operator@example.com",
      ACME_DIRECTORY: pebble.directory,
      ACME_CA_FILE: pebble.caFile,
      DNS_HOST: "127.0.0.1",
      DNS_PORT: String(dnsPort),
      DNS_SERVERS: `127.0.0.1:${unbound.port}`,
      TLS_PORT: "0",
      PUBLIC_IPS: "127.0.0.1",
      PUBLIC_URL,
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(peer.port),
    };
    service = await startService(env, clock);
    resolver = createResolver({ clock: systemClock }, { servers: [unbound] });
    root = await pebble.root();
  }, LIMIT_MS);
  afterAll(async () => {
    await service?.stop();
    await pebble?.stop();
    await unbound?.stop();
    peer?.stop();
    world?.stop();
  });

  /**
   * The records of a name, as strings, or the status of the answer. @param by unbound, or our name server, which
   * has no cache
   */
  async function asked(name: string, type: string, by = resolver): Promise<readonly string[] | string> {
    const result = await by.resolve(name, type as "TXT", { fresh: true });
    if (result.status !== "ok") return result.status;
    return result.records.map((record) =>
      record.type === "TXT"
        ? joinedStrings(record.data)
        : "data" in record
          ? JSON.stringify(record.data).toLowerCase()
          : "",
    );
  }
  const direct = () =>
    createResolver({ clock: systemClock }, { servers: [{ ip: "127.0.0.1", port: dnsPort }] });

  /** A connection to TLS_PORT that asks for a host; null if the root of pebble does not lead to a certificate for it. */
  function connected(servername: string): Promise<TLSSocket | null> {
    return new Promise((resolve) => {
      const port = service.app.ports.tls ?? 0;
      const socket = connect({ host: "127.0.0.1", port, servername, ca: root }, () => resolve(socket));
      socket.on("error", () => resolve(null));
    });
  }
  async function isServed(host: string): Promise<boolean> {
    const socket = await connected(host);
    socket?.destroy();
    return socket !== null;
  }

  interface Answered {
    status: number;
    location: string | undefined;
    body: string;
  }

  /** Sends a request to TLS_PORT, whose certificate is verified for `servername`. */
  function ask(method: string, { host, path, servername = host, headers = {} }: Ask): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const port = service.app.ports.tls ?? 0;
      const options = { host: "127.0.0.1", port, path, method, servername, ca: root, agent: false };
      const sent = httpsRequest({ ...options, headers: { host, ...headers } }, (response) => {
        let body = "";
        response.on("data", (chunk) => {
          body += String(chunk);
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, location: response.headers.location, body }),
        );
      });
      sent.on("error", reject);
      sent.end();
    });
  }
  /** Opens the stream of events over TLS. */
  function openStream(): Promise<{ seen: () => string; close: () => void }> {
    return new Promise((resolve, reject) => {
      const host = `api.${SERVICE_DOMAIN}`;
      const port = service.app.ports.tls ?? 0;
      const headers = { host, authorization: `Bearer ${service.projectKey}` };
      const options = { host: "127.0.0.1", port, path: "/v1/events/stream", servername: host, ca: root };
      const asked = httpsRequest({ ...options, agent: false, headers }, (response) => {
        let seen = "";
        response.on("data", (chunk) => {
          seen += String(chunk);
        });
        response.on("error", () => undefined);
        resolve({ seen: () => seen, close: () => asked.destroy() });
      });
      asked.on("error", reject);
      asked.end();
    });
  }

  interface Ask {
    host: string;
    path: string;
    servername?: string;
    headers?: Record<string, string>;
  }

  /** Makes each order that failed due once more. On a busy machine hurried timeouts end too early. */
  async function retryFailed(): Promise<void> {
    const { db } = service.app;
    const rows = await db.all<{ id: string; last_error_at: number }>(
      "SELECT id, last_error_at FROM certificates WHERE last_error IS NOT NULL",
    );
    for (const { id: certificate, last_error_at: at } of rows) {
      if (retried.has(`${certificate} ${at}`)) continue;
      retried.add(`${certificate} ${at}`);
      await db.write([{ sql: "UPDATE certificates SET due_at = 0 WHERE id = ?", args: [certificate] }]);
    }
  }

  /** Sends a message with a link, and returns what the peer got. */
  async function sent(subject: string, from = DOMAIN): Promise<{ id: string; text: string; raw: Buffer }> {
    const { body } = await service.call("POST", "/v1/emails", {
      from: { email: `news@${from}` },
      to: [{ email: `${subject.replace(" ", "-")}@${RECIPIENT}` }],
      subject,
      html: '<a href="https://shop.example/">Shop</a> <a href="{{unsubscribeUrl}}">no more</a>',
      unsubscribeLink: true,
    });
    await service.message(body.id, "delivered");
    const raw = peer.messages.items.findLast(({ data }) => data.includes(`Subject: ${subject}`))?.data;
    if (raw === undefined) throw new Error("the peer has no such message");
    const text = raw.toString().replaceAll("=\r\n", "").replaceAll("=3D", "=").replaceAll("\r\n ", "");
    return { id: body.id, text, raw };
  }
  const linksIn = (text: string): string[] => [
    ...new Set(text.match(/https:\/\/[^"'()\s<>]+\/[ocu]\/[^"'()\s<>&]+/g)),
  ];

  test("has one certificate for its hosts, and health shows it", async () => {
    const made = await service.call("POST", "/v1/domains", { domain: DOMAIN, delegated: true });
    id = made.body.id;
    const second = await service.call("POST", "/v1/domains", { domain: GONE, delegated: true });
    gone = second.body.id;
    // unbound asks our name server at once, because the zone above has no server. There the delegation would be seen.
    await service.app.db.write([{ sql: "UPDATE domains SET served = 1", args: [] }]);
    // On a busy machine the hurried timeouts of lookups end too early, so a check is repeated.
    for (const one of [gone, id])
      await until(async () => {
        const { body } = await service.call("POST", `/v1/domains/${one}/verify`);
        return body.status === "verified" && body.delegation.status === "active";
      });
    const health = async () =>
      (await service.call("GET", "/v1/health", undefined, { key: service.accountKey })).body;
    const row = async (host = LINKS) =>
      (await health()).certificates.find(({ names }: { names: string[] }) => names.includes(host));
    for (const host of [LINKS, `links.${GONE}`, `mx.${SERVICE_DOMAIN}`])
      await until(async () => {
        await retryFailed();
        return (await row(host))?.source === "acme";
      });
    expect(await row()).toMatchObject({ names: [LINKS, STS], lastError: null });
    const line = (await health()).checks.find(({ name }: { name: string }) => name === "domain certificates");
    expect(line).toMatchObject({ status: "ok", message: "2 of 2 delegated domains have a certificate." });
  });

  test("meets clients that ask for one of its hosts, and no others", async () => {
    // A handshake may have to be repeated while the server before stops.
    for (const host of [LINKS, STS, `mx.${SERVICE_DOMAIN}`]) await until(() => isServed(host));
    const own = await connected(`mx.${SERVICE_DOMAIN}`);
    const ours = own?.getPeerCertificate().subjectaltname;
    own?.destroy();
    for (const host of [DOMAIN, `www.${DOMAIN}`, "links.other.test", `deep.${LINKS}`])
      expect([host, await isServed(host)]).toEqual([host, false]);
    // A client that asks for a host which is not ours meets the service's own certificate, and does not trust it.
    const shown = await new Promise<string | undefined>((resolve) => {
      const port = service.app.ports.tls ?? 0;
      const options = {
        host: "127.0.0.1",
        port,
        servername: "links.other.test",
        rejectUnauthorized: false,
      };
      const socket = connect(options, () => {
        resolve(socket.getPeerCertificate().subjectaltname);
        socket.destroy();
      });
    });
    expect(shown).toBe(ours ?? "");
  });

  test("sends signed mail whose links lead to its own host, and they work", async () => {
    let mail = await sent("first");
    for (let at = 0; !mail.text.includes(`https://${LINKS}/`); at++) mail = await sent(`again ${at}`);
    expect(mail.text).not.toContain(PUBLIC_URL);
    const links = linksIn(mail.text).map((link) => new URL(link));
    expect(links.map(({ host, pathname }) => `${host}${pathname.slice(0, 3)}`).sort()).toEqual([
      `${LINKS}/c/`,
      `${LINKS}/o/`,
      `${LINKS}/u/`,
    ]);
    const answers: Record<string, Answered> = {};
    for (const { host, pathname } of links)
      answers[pathname.slice(1, 2)] = await ask("GET", { host, path: pathname });
    expect(answers).toMatchObject({
      c: { status: 302, location: "https://shop.example/" },
      o: { status: 200 },
      u: { status: 200, body: expect.stringContaining("Unsubscribe") },
    });
    const { results } = await dkimVerify(mail.raw, { resolver: nodeStyleResolver(resolver) as never });
    expect(results.map(({ status }) => status.result)).toEqual(["pass"]);
    const record = (await service.call("GET", `/v1/emails/${mail.id}`)).body;
    const types = record.events.map(({ type }: { type: string }) => type);
    expect(types).toEqual(expect.arrayContaining(["open", "click"]));
    const path = links.find(({ pathname }) => pathname.startsWith("/u/"))?.pathname ?? "";
    expect((await ask("POST", { host: LINKS, path })).status).toBe(200);
  });

  test.each([
    ["the certificate has ended", "certificates SET not_after = 1 WHERE domain_id IS NOT NULL"],
    ["the delegation is not seen", "domains SET delegation_found = 0"],
    [
      "the message is older than the certificate",
      "certificates SET served_from = not_after WHERE domain_id IS NOT NULL",
    ],
  ])("sends links to PUBLIC_URL if %s", async (_what, change) => {
    const { db } = service.app;
    const before = await db.all<{ id: string; served_from: number; not_after: number }>(
      "SELECT id, served_from, not_after FROM certificates WHERE domain_id IS NOT NULL",
    );
    await db.write([{ sql: `UPDATE ${change}`, args: [] }]);
    const { text } = await sent(`without ${change.length}`);
    expect(linksIn(text).map((link) => link.slice(0, PUBLIC_URL.length))).toEqual(Array(3).fill(PUBLIC_URL));
    await db.write([
      { sql: "UPDATE domains SET delegation_found = 1", args: [] },
      ...before.map(({ id: certificate, served_from: from, not_after: end }) => ({
        sql: "UPDATE certificates SET served_from = ?, not_after = ? WHERE id = ?",
        args: [from, end, certificate],
      })),
    ]);
  });

  test("its hosts serve nothing but links and the policy, and no host serves another's policy", async () => {
    const bearer = { authorization: `Bearer ${service.accountKey}` };
    const page = { accept: "text/html" };
    const rows: [string, string, Record<string, string>][] = [
      ["/", "/", page],
      ["the API", "/v1/domains", bearer],
      ["the API by another way", "/o/../v1/domains", bearer],
      ["the API encoded", "/o/x/%2e%2e/%2e%2e/v1/domains", bearer],
      ["the reference", "/docs", page],
      ["the dashboard", "/emails", page],
      ["the dashboard below a link", "/o/x/y", page],
      ["the dashboard's session", "/ui/session", page],
      ["the agents' tools", "/mcp", bearer],
      ["a probe", "/readyz", {}],
    ];
    for (const host of [LINKS, STS, `${LINKS}.`, LINKS.toUpperCase(), `${LINKS}:443`])
      for (const [what, path, headers] of rows) {
        const { status, body } = await ask("GET", { host, path, headers, servername: LINKS });
        expect([host, what, status]).toEqual([host, what, 404]);
        expect(JSON.parse(body).error.type).toBe("not_found");
      }
    const policy = "/.well-known/mta-sts.txt";
    for (const host of [LINKS, DOMAIN, "mta-sts.other.test", `mta-sts.${RECIPIENT}`, "mta-sts.", "x"])
      expect([host, (await ask("GET", { host, path: policy, servername: STS })).status]).toEqual([host, 404]);
    expect((await ask("GET", { host: STS, path: "/o/x", servername: STS })).status).toBe(404);
    const own = await ask("GET", {
      host: `api.${SERVICE_DOMAIN}`,
      path: "/v1/domains",
      headers: { authorization: `Bearer ${service.projectKey}` },
    });
    expect(own.status).toBe(200);
  });

  test("serves a policy that enforces TLS while it receives, and mail comes in", async () => {
    const deps = { clock: systemClock, resolver: direct(), mayReach: () => true, ca: root };
    const options = { port: service.app.ports.tls ?? 0, allowPrivate: true };
    const policy = async () => {
      const found = await fetchStsPolicy(deps, DOMAIN, options);
      return found.kind === "policy" ? found.policy : null;
    };
    const announced = async () => String(await asked(`_mta-sts.${DOMAIN}`, "TXT", direct()));
    await until(async () => (await announced()).startsWith("v=STSv1; id="));
    const before = await announced();
    expect(await policy()).toMatchObject({ mode: "none" });
    await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true });
    await until(async () => (await announced()) !== before);
    await until(async () => (await policy())?.mode === "enforce");
    expect(await policy()).toMatchObject({ mode: "enforce", mx: [`mx.${SERVICE_DOMAIN}`] });
    await service.call("POST", "/v1/inboxes", { address: `desk@${DOMAIN}` });
    // A sender whose session takes too long comes again.
    let record: unknown = null;
    await until(async () => {
      const mail = { to: `desk@${DOMAIN}`, headers: ["Subject: In"] };
      record = await deliveredRecord(service, mail).catch(() => null);
      return record !== null;
    });
    expect(record).toMatchObject({ subject: "In", direction: "inbound" });
  });

  test("doctor finds out whether port 443 leads to TLS_PORT", async () => {
    const { db } = service.app;
    const settings = loadConfig({ ...env, SERVICE_DOMAIN });
    const line = async (port: number) => {
      // The time of the service, whose certificates count from some of its minutes after their issue.
      const time = { ...systemClock, now: () => clock.now() };
      const parts = { db: () => db, clock: time, resolver: direct(), settings, port, ca: root };
      return (await runHealth(systemClock, tlsPortChecks(parts)))[0];
    };
    const right = `Port 443 of mta-sts.${SERVICE_DOMAIN} leads to TLS_PORT.`;
    await until(async () => (await line(service.app.ports.tls ?? 0))?.message === right);
    const wrong = await line(service.app.ports.http);
    expect(wrong?.status).toBe("warn");
    expect(wrong?.message).toContain("cannot be read as senders read it: ");
    expect(wrong?.fix).toContain("Forward port 443");
  });

  test("unbound resolves every record of its zone as our name server has it", async () => {
    const rows: [string, string][] = [
      ...[LINKS, STS].map((host): [string, string] => [host, "A"]),
      ...["NS", "MX", "TXT"].map((type): [string, string] => [DOMAIN, type]),
      [`_mta-sts.${DOMAIN}`, "TXT"],
      [`_smtp._tls.${DOMAIN}`, "TXT"],
      [`_dmarc.${DOMAIN}`, "TXT"],
      [`pr1._domainkey.${DOMAIN}`, "TXT"],
    ];
    for (const [name, type] of rows) {
      const ours = await asked(name, type, direct());
      expect([name, type, Array.isArray(ours)]).toEqual([name, type, true]);
      expect([name, type, await asked(name, type)]).toEqual([name, type, ours]);
    }
    const dig = await run(["dig", "+short", "-p", String(unbound.port), "@127.0.0.1", LINKS, "A"]);
    expect(dig.output.trim()).toBe("127.0.0.1");
    // The answers to challenges are gone.
    expect(await asked(`_acme-challenge.${LINKS}`, "TXT", direct())).toBe("nxdomain");
  });

  test("its owner has no records at the names of its hosts", async () => {
    for (const name of [
      LINKS,
      STS,
      `_mta-sts.${DOMAIN}`,
      `_acme-challenge.${LINKS}`,
      `_acme-challenge.${STS}`,
    ]) {
      const record = { type: "TXT", name, value: "mine" };
      const { status, body } = await service.call("POST", `/v1/domains/${id}/records`, record);
      expect([name, status, body.error.type]).toEqual([name, 409, "conflict"]);
    }
  });

  test("loses hosts and certificate when it is deleted, and links of earlier mail lead nowhere", async () => {
    const old = await sent("last", GONE);
    const [link = ""] = linksIn(old.text).filter((one) => one.includes("/c/"));
    expect(link).toStartWith(`https://links.${GONE}/c/`);
    const stream = await openStream();
    expect((await service.call("DELETE", `/v1/domains/${gone}`)).status).toBe(204);
    const rows = await service.app.db.all("SELECT id FROM certificates WHERE domain_id IS NOT NULL");
    expect(rows).toEqual([{ id }]);
    await until(async () => !(await isServed(`links.${GONE}`)));
    await until(async () => (await asked(`links.${GONE}`, "A", direct())) === "failure");
    await until(() => isServed(LINKS));
    // The server listens with fewer certificates now, and the stream of before is still fed.
    const { id: later } = await sent("after");
    await until(() => stream.seen().includes(later));
    stream.close();
    const policy = { host: `mta-sts.${GONE}`, path: "/.well-known/mta-sts.txt", servername: STS };
    expect((await ask("GET", policy)).status).toBe(404);
    // The link itself is still right, at whatever host leads here.
    const again = await ask("GET", { host: `api.${SERVICE_DOMAIN}`, path: new URL(link).pathname });
    expect(again).toMatchObject({ status: 302, location: "https://shop.example/" });
  });
});
