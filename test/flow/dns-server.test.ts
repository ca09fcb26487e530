import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { resolveMx, resolveTxt } from "../../src/net/dns/lookups.ts";
import { nodeStyleResolver } from "../../src/net/dns/node-style-resolver.ts";
import { createResolver, type Resolver } from "../../src/net/dns/resolver.ts";
import { ANSWERS_PER_SECOND } from "../../src/net/zone/response-limiter.ts";
import { startZoneServer, type ZoneServer } from "../../src/net/zone/server.ts";
import { arrivals } from "../support/arrivals.ts";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { run, startUnbound, type TestUnbound, titled, toolMissing } from "../support/dns-tools.ts";
import { newFolder } from "../support/folder.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { ORIGIN, queryOctets, quietLog, testZone, TOKEN } from "../support/zone.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { freePort } from "../support/redis.ts";

const CUSTOMER = "customer.test";
const RECIPIENT = "reader.test";
const IPS = "192.0.2.10,2001:db8::10";
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);

let service: TestService;
/** The zones of other owners: the customer's, and the recipient's. */
let world: TestDns;
let peer: TestMx;
let port: number;
/** The DKIM records that the customer publishes: a CNAME into our zone. */
let target: string;
let message: Buffer;

beforeAll(async () => {
  world = await startDns(
    { name: RECIPIENT, type: "MX", data: { preference: 10, exchange: `mx.${RECIPIENT}` } },
    { name: `mx.${RECIPIENT}`, type: "A", data: "127.0.0.1" },
  );
  peer = startMx();
  const dnsPort = freePort();
  service = await startService({
    DNS_HOST: "127.0.0.1",
    DNS_PORT: String(dnsPort),
    PUBLIC_IPS: IPS,
    PUBLIC_URL: `https://api.${SERVICE_DOMAIN}`,
    // Our server refuses foreign names, and then the other server is queried.
    DNS_SERVERS: `127.0.0.1:${dnsPort},${world.address}`,
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(peer.port),
  });
  port = service.app.ports.dns ?? 0;
  const made = await service.call("POST", "/v1/domains", { domain: CUSTOMER });
  publish(world, made.body.records);
  target = made.body.records[0].value;
  const verified = await service.call("POST", `/v1/domains/${made.body.id}/verify`);
  expect(verified.body).toMatchObject({ status: "verified", authHealth: { dkim: "verified" } });
  message = await sent();
}, LIMIT_MS);

afterAll(async () => {
  await service?.stop();
  world?.stop();
  peer?.stop();
});

async function sent(): Promise<Buffer> {
  const { status, body } = await service.call("POST", "/v1/emails", {
    from: { email: `news@${CUSTOMER}` },
    to: [{ email: `somebody@${RECIPIENT}` }],
    subject: "Signed",
    text: "The key is in the operator's zone.\n",
  });
  if (status !== 202) throw new Error(`not accepted: ${JSON.stringify(body)}`);
  await service.message(body.id, "delivered");
  const [mail] = peer.messages.items;
  if (mail === undefined) throw new Error("no mail came");
  return mail.data;
}

function resolverOf(...servers: { ip: string; port: number }[]): Resolver {
  return createResolver({ clock: systemClock }, { servers });
}

async function verdicts(resolver: Resolver) {
  const node = nodeStyleResolver(resolver);
  const txt = async (name: string, type: string) => (await node(name, type)) as string[][];
  const { results } = await dkimVerify(message, { resolver: txt });
  return results.map(({ signingDomain, status }) => `${signingDomain} ${status.result}`);
}

describe("our own resolver", () => {
  test("our own resolver verifies a customer's message by the CNAME that leads into our zone", async () => {
    const resolver = resolverOf({ ip: "127.0.0.1", port }, world);
    expect(await verdicts(resolver)).toEqual([`${CUSTOMER} pass`]);
  });

  test("distinguishes a missing key from a zone that does not answer", async () => {
    const resolver = resolverOf({ ip: "127.0.0.1", port });
    const name = (token: string) => `${token}.dkim.${SERVICE_DOMAIN}`;
    expect(await resolveTxt(resolver, name("0".repeat(26)))).toEqual({ status: "nxdomain" });
    expect(await resolveTxt(resolver, `dkim.${SERVICE_DOMAIN}`)).toEqual({ status: "nodata" });
    expect(await resolveMx(resolver, SERVICE_DOMAIN)).toMatchObject({ status: "ok" });
  });
});

const DIG = toolMissing("dig");
describe(titled("dig", DIG), () => {
  const names: [string, string, string[]][] = [
    [SERVICE_DOMAIN, "NS", [`ns.${SERVICE_DOMAIN}.`]],
    [SERVICE_DOMAIN, "MX", [`10 mx.${SERVICE_DOMAIN}.`]],
    [`ns.${SERVICE_DOMAIN}`, "A", ["192.0.2.10"]],
    [SERVICE_DOMAIN, "A", ["192.0.2.10"]],
    [SERVICE_DOMAIN, "AAAA", ["2001:db8::10"]],
    [SERVICE_DOMAIN, "CAA", [""]],
    [`mta-sts.${SERVICE_DOMAIN}`, "A", ["192.0.2.10"]],
    [`_mta-sts.${SERVICE_DOMAIN}`, "TXT", [""]],
    [`_smtp._tls.${SERVICE_DOMAIN}`, "TXT", [`"v=TLSRPTv1; rua=mailto:tls-reports@${SERVICE_DOMAIN}"`]],
    [`mx.${SERVICE_DOMAIN}`, "A", ["192.0.2.10"]],
    [`mx.${SERVICE_DOMAIN}`, "AAAA", ["2001:db8::10"]],
    [`api.${SERVICE_DOMAIN}`, "A", ["192.0.2.10"]],
    [`spf.${SERVICE_DOMAIN}`, "TXT", ['"v=spf1 ip4:192.0.2.10 ip6:2001:db8::10 ~all"']],
    [`bounce.${SERVICE_DOMAIN}`, "MX", [`10 mx.${SERVICE_DOMAIN}.`]],
    [`bounce.${SERVICE_DOMAIN}`, "TXT", [`"v=spf1 include:spf.${SERVICE_DOMAIN} ~all"`]],
    [`onboarding.${SERVICE_DOMAIN}`, "TXT", [`"v=spf1 include:spf.${SERVICE_DOMAIN} ~all"`]],
    [`simulator.${SERVICE_DOMAIN}`, "MX", ["0 ."]],
    [`${CUSTOMER}._report._dmarc.${SERVICE_DOMAIN}`, "TXT", ['"v=DMARC1"']],
    [`_dmarc.${SERVICE_DOMAIN}`, "TXT", [`"v=DMARC1; p=reject; rua=mailto:dmarc@${SERVICE_DOMAIN}"`]],
    [SERVICE_DOMAIN, "ANY", ['"RFC8482" ""']],
  ];
  test.skipIf(DIG !== null).each(names)("%s %s", async (name, type, answers) => {
    const { output } = await run(["dig", "+short", "+norec", "-p", String(port), "@127.0.0.1", name, type]);
    expect(output.trim().split("\n").sort()).toEqual(answers);
  });

  // Each way of querying with dig and its expected output. `;; Warning` and the like would be in the output.
  const ways: [string, string[], string[]][] = [
    ["without EDNS", ["+noedns", SERVICE_DOMAIN, "MX"], ["status: NOERROR", "flags: qr aa;", "ANSWER: 1"]],
    ["with random case", ["mAiL.tEsT", "SOA"], ["mAiL.tEsT.", "status: NOERROR"]],
    ["by TCP, kept open", ["+tcp", "+keepopen", SERVICE_DOMAIN, "NS", SERVICE_DOMAIN, "MX"], ["ANSWER: 1"]],
    ["with a cookie and DNSSEC", ["+cookie", "+dnssec", SERVICE_DOMAIN, "MX"], ["flags: do;", "NOERROR"]],
    ["with a later EDNS", ["+edns=1", "+noednsnegotiation", SERVICE_DOMAIN, "MX"], ["status: BADVERS"]],
    ["with an unknown EDNS option", ["+ednsopt=100", SERVICE_DOMAIN, "MX"], ["status: NOERROR"]],
    ["with an unknown EDNS flag", ["+ednsflags=0x80", SERVICE_DOMAIN, "MX"], ["EDNS: version: 0, flags:;"]],
    ["an unknown type", [SERVICE_DOMAIN, "TYPE1000"], ["status: NOERROR", "ANSWER: 0, AUTHORITY: 1"]],
    ["an unknown operation", ["+noedns", "+opcode=15", SERVICE_DOMAIN], ["status: NOTIMP"]],
    ["no question", ["+noedns", "+header-only"], ["status: FORMERR"]],
    ["a name that does not exist", [`no.${SERVICE_DOMAIN}`], ["status: NXDOMAIN", "AUTHORITY: 1"]],
    ["another's name", ["example.com"], ["status: REFUSED"]],
    ["our version", ["version.bind", "CH", "TXT"], ["status: REFUSED"]],
    ["the whole zone", [SERVICE_DOMAIN, "AXFR"], ["Transfer failed"]],
  ];
  test.skipIf(DIG !== null).each(ways)("queries %s", async (_way, args, words) => {
    const { output } = await run(["dig", "+norec", "-p", String(port), "@127.0.0.1", ...args]);
    for (const word of words) expect(output).toContain(word);
    expect(output).not.toMatch(/malformed|extra bytes|unexpected|timed out|;; Warning/i);
  });
});

const KDIG = toolMissing("kdig");
describe(titled("kdig", KDIG), () => {
  test.skipIf(KDIG !== null)("reads a key completely, by UDP and by TCP", async () => {
    for (const way of ["+notcp", "+tcp"]) {
      const { output, code } = await run([
        "kdig",
        way,
        "+norec",
        "+short",
        "@127.0.0.1",
        "-p",
        String(port),
        target,
        "TXT",
      ]);
      const key = output.replaceAll(/" "|"|\n/g, "");
      expect([key.startsWith("v=DKIM1; k=rsa; p="), key.length, code]).toEqual([true, 410, 0]);
    }
  });
});

const UNBOUND = toolMissing("unbound", "dig");
describe(titled("unbound", UNBOUND), () => {
  let unbound: TestUnbound;
  beforeAll(async () => {
    if (UNBOUND === null) unbound = await startUnbound({ [SERVICE_DOMAIN]: port, [CUSTOMER]: world.port });
  });
  afterAll(() => unbound?.stop());

  test.skipIf(UNBOUND !== null)(
    "follows the customer's CNAME to the key, and the mail verifies",
    async () => {
      expect(await verdicts(resolverOf(unbound))).toEqual([`${CUSTOMER} pass`]);
    },
  );

  test.skipIf(UNBOUND !== null)("resolves every name of the zone with query name minimisation", async () => {
    const asked: [string, string, RegExp][] = [
      [SERVICE_DOMAIN, "SOA", /NOERROR/],
      [SERVICE_DOMAIN, "NS", /ANSWER: 1/],
      [SERVICE_DOMAIN, "MX", /ANSWER: 1/],
      [`mx.${SERVICE_DOMAIN}`, "A", /ANSWER: 1/],
      [`mx.${SERVICE_DOMAIN}`, "AAAA", /ANSWER: 1/],
      [`spf.${SERVICE_DOMAIN}`, "TXT", /ANSWER: 1/],
      [`pr1._domainkey.onboarding.${SERVICE_DOMAIN}`, "TXT", /ANSWER: 1/],
      [`${CUSTOMER}._report._dmarc.${SERVICE_DOMAIN}`, "TXT", /ANSWER: 1/],
      [target, "TXT", /ANSWER: 1/],
      [`dkim.${SERVICE_DOMAIN}`, "TXT", /NOERROR.*ANSWER: 0/s],
      [`no.${SERVICE_DOMAIN}`, "A", /NXDOMAIN/],
    ];
    for (const [name, type, said] of asked) {
      const { output } = await run(["dig", "-p", String(unbound.port), "@127.0.0.1", name, type]);
      expect(output).toMatch(said);
    }
  });
});

describe("when UDP is limited, independent programs switch to TCP", () => {
  let server: ZoneServer;
  beforeAll(async () => {
    // Its clock stands still, so that a limit stays reached.
    const deps = { clock: manualClock(), log: quietLog(), zone: testZone() };
    server = await startZoneServer(deps, { hosts: ["127.0.0.1"], port: 0 });
  });
  afterAll(() => server?.stop());

  const LARGE = `large.${ORIGIN}`;
  const clients: [string, string | null, string[]][] = [
    ["dig", DIG, ["dig", "+norec"]],
    ["kdig", KDIG, ["kdig", "+norec"]],
  ];
  for (const [name, missing, command] of clients)
    test.skipIf(missing !== null)(
      titled(`${name}: an answer larger than a datagram's`, missing),
      async () => {
        const at = ["@127.0.0.1", "-p", String(server.port), LARGE, "TXT"];
        const ignoring = await run([...command, "+ignore", ...at]);
        expect(ignoring.output).toMatch(/flags: qr aa tc;.* ANSWER: 0/i);
        const whole = await run([...command, ...at]);
        expect(whole.output).toMatch(/ANSWER: 1/);
      },
    );

  test.skipIf(UNBOUND !== null)(
    titled("unbound: an answer larger than a datagram's, and a network over its limit", UNBOUND),
    async () => {
      const question = `${TOKEN}.dkim.${ORIGIN}`;
      await spend(server.port, queryOctets(question, "TXT"), 2 * ANSWERS_PER_SECOND.records);
      const unbound = await startUnbound({ [ORIGIN]: server.port });
      for (const name of [LARGE, question]) {
        const asked = await resolveTxt(resolverOf(unbound), name);
        expect([name, asked.status]).toEqual([name, "ok"]);
      }
      await unbound.stop();
    },
  );
});

/** Queries by UDP until the limit is reached. Returns the number of complete answers. */
async function spend(to: number, query: Buffer, answers: number): Promise<void> {
  const came = arrivals<Buffer>();
  const socket = await Bun.udpSocket({
    connect: { hostname: "127.0.0.1", port: to },
    binaryType: "buffer",
    socket: { data: (_socket, packet) => came.add(packet) },
  });
  for (let at = 1; at <= answers; at++) {
    socket.send(query);
    await came.reached(at);
  }
  socket.close();
}

const CHECKZONE = toolMissing("named-checkzone");
describe(titled("postrider dns zone", CHECKZONE), () => {
  const MAIN = join(import.meta.dir, "../../src/main.ts");
  const command = (env: Record<string, string>) => {
    const settings = Object.entries({ SERVICE_DOMAIN, ...env }).map(([name, value]) => `${name}=${value}`);
    return run(["env", "-u", "PUBLIC_IPS", ...settings, process.execPath, MAIN, "dns", "zone"]);
  };

  test.skipIf(CHECKZONE !== null)(
    "prints a zone that named-checkzone accepts without a warning",
    async () => {
      const { output, code } = await command({
        ...service.sameDatabase,
        PUBLIC_IPS: IPS,
        PUBLIC_URL: `https://api.${SERVICE_DOMAIN}`,
      });
      expect([code, output.split("\n").filter((line) => line.startsWith(`${target}.`))]).toEqual([
        0,
        [expect.stringContaining(" 3600 IN TXT ")],
      ]);
      const file = join(service.folder, "zone");
      await Bun.write(file, output);
      const checked = await run(["named-checkzone", "-i", "local", SERVICE_DOMAIN, file]);
      expect(checked.output.trim().split("\n")).toEqual([expect.stringContaining("loaded serial"), "OK"]);
      // The answers equal the printed zone: dig prints names and data as the file has them.
      if (DIG !== null) return;
      for (const line of output.trim().split("\n")) {
        const [name = "", ttl, , type = "", ...data] = line.split(" ");
        if (type === "SOA") continue;
        const asked = ["dig", "+norec", "+noall", "+answer", "-p", String(port), "@127.0.0.1", name, type];
        const said = (await run(asked)).output
          .replaceAll(/[\t ]+/g, " ")
          .trim()
          .split("\n");
        expect(said).toContain(`${name} ${ttl} IN ${type} ${data.join(" ")}`);
      }
    },
  );

  test("reports what is missing: PUBLIC_IPS, or a database", async () => {
    const folder = newFolder("zone");
    const without = await command({ DATA_DIR: folder });
    expect([without.code, without.output]).toEqual([78, expect.stringContaining("PUBLIC_IPS is not set")]);
    const empty = await command({ DATA_DIR: folder, PUBLIC_IPS: IPS });
    expect([empty.code, empty.output]).toEqual([70, expect.stringContaining("not up to date")]);
  });
});
