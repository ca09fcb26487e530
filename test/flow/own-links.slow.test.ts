import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { request as httpsRequest } from "node:https";
import { connect } from "node:tls";
import { publish, type ShownRecord, startDns, type TestDns } from "../support/dns.ts";
import { startUnbound, type TestUnbound, titled, toolMissing } from "../support/dns-tools.ts";
import { hurried } from "../support/hurried-clock.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { type Pebble, PEBBLE_MISSING, startPebble } from "../support/pebble.ts";
import { until } from "../support/poll.ts";
import { freePort } from "../support/redis.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

// A domain whose owner publishes every record, the recommended ones too. unbound resolves all names, and pebble finds the
// answers to its challenges through the owner's alias.

const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
/** Timers run so much faster than the system's, so that orders take seconds. */
const HURRY = 10;
const DOMAIN = "shop.customer.test";
const LINKS = `links.${DOMAIN}`;
const RECIPIENT = "reader.test";
const PUBLIC_URL = `https://api.${SERVICE_DOMAIN}`;
const MISSING = PEBBLE_MISSING ?? toolMissing("unbound", "dig");

describe.skipIf(MISSING !== null)(titled("a domain with aliases of its own", MISSING), () => {
  let world: TestDns;
  let unbound: TestUnbound;
  let pebble: Pebble;
  let peer: TestMx;
  let service: TestService;
  let root: string;
  let id: string;
  let recommended: ShownRecord[];

  beforeAll(async () => {
    const dnsPort = freePort();
    world = await startDns(
      { name: RECIPIENT, type: "MX", data: { preference: 10, exchange: `mx.${RECIPIENT}` } },
      { name: `mx.${RECIPIENT}`, type: "A", data: "127.0.0.1" },
    );
    unbound = await startUnbound({ [SERVICE_DOMAIN]: dnsPort, test: world.port });
    pebble = await startPebble({ dnsPort: unbound.port });
    peer = startMx();
    service = await startService(
      {
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
      },
      hurried(HURRY),
    );
    root = await pebble.root();
  }, LIMIT_MS);
  afterAll(async () => {
    await service?.stop();
    await pebble?.stop();
    await unbound?.stop();
    peer?.stop();
    world?.stop();
  });

  const verify = async () => (await service.call("POST", `/v1/domains/${id}/verify`)).body;
  const verifiedPurposes = async (): Promise<[string, boolean][]> =>
    (await verify()).recommended.map(
      ({ purpose, verified }: ShownRecord & { purpose: string; verified: boolean }) => [purpose, verified],
    );

  /** Returns whether TLS_PORT has a certificate for a host to which the root of pebble leads. */
  function isServed(servername: string): Promise<boolean> {
    return new Promise((resolve) => {
      const port = service.app.ports.tls ?? 0;
      const socket = connect({ host: "127.0.0.1", port, servername, ca: root }, () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    });
  }

  let count = 0;
  /** Sends a message with a link. Returns what the peer got, and the hosts of its links. */
  async function sent(): Promise<{ mailFrom: string; hosts: string[]; link: URL }> {
    const subject = `number ${++count}.`;
    const { body } = await service.call("POST", "/v1/emails", {
      from: { email: `news@${DOMAIN}` },
      to: [{ email: `r${count}@${RECIPIENT}` }],
      subject,
      html: '<a href="https://brand.example/">Shop</a>',
    });
    await service.message(body.id, "delivered");
    const mail = peer.messages.items.findLast(({ data }) => data.includes(`Subject: ${subject}`));
    const text = String(mail?.data).replaceAll("=\r\n", "").replaceAll("=3D", "=");
    const links = [...text.matchAll(/https:\/\/[^"\s<>]+\/[oc]\/[^"\s<>]+/g)].map(([link]) => new URL(link));
    const link = links.find(({ pathname }) => pathname.startsWith("/c/"));
    if (mail === undefined || link === undefined) throw new Error("the peer has no such message");
    return { mailFrom: mail.mailFrom, hosts: [...new Set(links.map(({ host }) => host))], link };
  }

  test("is verified without them, and its links lead to PUBLIC_URL", async () => {
    const made = await service.call("POST", "/v1/domains", { domain: DOMAIN });
    id = made.body.id;
    recommended = made.body.recommended;
    const label = id.slice("dom_".length);
    const row = (purpose: string, name: string, value: string) => ({
      type: "CNAME",
      name,
      value,
      purpose,
      verified: false,
    });
    expect(made.body.recommended).toEqual([
      row("return_path", `bounce.${DOMAIN}`, `bounce.${SERVICE_DOMAIN}`),
      row("links", LINKS, `links.${SERVICE_DOMAIN}`),
      row("links", `_acme-challenge.${LINKS}`, `${label}._acme-challenge.links.${SERVICE_DOMAIN}`),
    ]);
    publish(world, made.body.records);
    await until(async () => (await verify()).status === "verified");
    expect((await sent()).hosts).toEqual([new URL(PUBLIC_URL).host]);
  });

  test("needs both aliases of links", async () => {
    publish(world, recommended.slice(0, 1));
    // unbound keeps it for a second, so that the last test finds it gone.
    world.add({ name: LINKS, type: "CNAME", data: `links.${SERVICE_DOMAIN}`, ttl: 1 });
    await until(async () => (await verifiedPurposes())[0]?.[1] === true);
    expect(await verifiedPurposes()).toEqual([
      ["return_path", true],
      ["links", false],
      ["links", false],
    ]);
    const { recommended: checked } = await verify();
    expect(checked.map(({ status }: { status: string }) => status)).toEqual([
      "verified",
      "verified",
      "missing",
    ]);
  });

  test("gets a certificate for its host through the alias, and its mail has its own links and return path", async () => {
    publish(world, recommended.slice(2));
    await until(async () => (await verifiedPurposes()).every(([, verified]) => verified));
    await until(() => isServed(LINKS));
    expect([await isServed(`mta-sts.${DOMAIN}`), await isServed(`www.${DOMAIN}`)]).toEqual([false, false]);
    let mail = await sent();
    while (mail.hosts[0] !== LINKS) mail = await sent();
    expect(mail.hosts).toEqual([LINKS]);
    expect(mail.mailFrom).toEndWith(`@bounce.${DOMAIN}`);
    const answer = await new Promise<[number, string | undefined]>((resolve, reject) => {
      const port = service.app.ports.tls ?? 0;
      const options = { host: "127.0.0.1", port, path: mail.link.pathname, servername: LINKS, ca: root };
      httpsRequest({ ...options, headers: { host: LINKS }, agent: false }, ({ statusCode, headers }) =>
        resolve([statusCode ?? 0, headers.location]),
      )
        .on("error", reject)
        .end();
    });
    expect(answer).toEqual([302, "https://brand.example/"]);
  });

  test("has links to PUBLIC_URL again after a check that misses an alias", async () => {
    world.remove(LINKS);
    await until(async () => (await verifiedPurposes())[1]?.[1] === false);
    expect((await sent()).hosts).toEqual([new URL(PUBLIC_URL).host]);
  });
});
