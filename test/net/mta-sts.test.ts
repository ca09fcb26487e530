import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { log } from "../../src/log.ts";
import { FETCH_TIMEOUT_MS } from "../../src/net/mta-sts-fetch.ts";
import {
  createMtaSts,
  FAILURE_PAUSE_SECONDS,
  FETCH_WAIT_MS,
  type StoredPolicy,
  type MtaSts,
  type PolicyStore,
  REFRESH_AFTER_SECONDS,
} from "../../src/net/mta-sts.ts";
import { MAX_POLICY_OCTETS } from "../../src/net/mta-sts-policy.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { type HttpsSink, startRawSink } from "../support/https-sink.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { makeExpiredCert, policyText, startStsHost, stsRecords, testResolver } from "../support/sts-host.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";
import { mayReach } from "../support/public-guard.ts";

const DOMAIN = "in.test";
const WEEK_SECONDS = 604_800;
const POLICY = policyText("mode: enforce", "mx: mx.in.test", `max_age: ${WEEK_SECONDS}`);
let ca: KeyAndCert;
let cert: KeyAndCert;
let dns: TestDns;
let clock: ManualClock;
let host: HttpsSink;
let saved: Map<string, StoredPolicy>;
const stops: (() => unknown)[] = [];

beforeAll(async () => {
  ca = await makeCa();
  cert = await makeCert([`mta-sts.${DOMAIN}`], ca);
  dns = await startDns();
});
afterAll(() => dns.stop());
beforeEach(() => {
  dns.add(...stsRecords(DOMAIN, "one"));
  clock = manualClock();
  saved = new Map();
  host = startStsHost(cert, POLICY);
  stops.push(() => host.stop());
});
afterEach(async () => {
  dns.remove(`_mta-sts.${DOMAIN}`);
  dns.remove(`mta-sts.${DOMAIN}`);
  for (const stop of stops.splice(0)) await stop();
});

const store: PolicyStore = {
  load: async (domain) => saved.get(domain) ?? null,
  save: async (policy) => void saved.set(policy.domain, policy),
};

interface Given {
  port?: number;
  allowPrivate?: boolean;
  store?: PolicyStore;
  ca?: string | undefined;
}

function mtaSts(given: Given = {}): MtaSts {
  const { port = host.port, allowPrivate = true } = given;
  const trusted = "ca" in given ? given.ca : ca.cert;
  const deps = {
    clock,
    resolver: testResolver(dns),
    mayReach,
    log: log("net"),
    store: given.store ?? store,
    ca: trusted,
  };
  return createMtaSts(deps, { port, allowPrivate });
}

/** The mode of the policy in force, "none" if there is none, or the deferral. */
async function modeOf(sts: MtaSts, domain = DOMAIN): Promise<string> {
  const found = await sts.policyFor(domain);
  return found.kind === "deferred" ? found.reason : (found.policy?.mode ?? "no policy");
}

/** Answers with a body and any other response properties. */
function answer(text: string, headers: Record<string, string> = {}, status = 200): void {
  host.answer(() => new Response(text, { status, headers: { "content-type": "text/plain", ...headers } }));
}

/** Announces another id. */
function announce(id: string): void {
  dns.remove(`_mta-sts.${DOMAIN}`);
  dns.add(...stsRecords(DOMAIN, id).slice(0, 1));
}

async function renewed(sts: MtaSts): Promise<StoredPolicy | null> {
  const found = await sts.policyFor(DOMAIN);
  if (found.kind !== "found") throw new Error(found.reason);
  return found.renewed();
}

describe("a policy", () => {
  test("a policy is fetched from the well-known URL once for all domains, and stored", async () => {
    const sts = mtaSts();
    const both = await Promise.all([sts.policyFor(DOMAIN), sts.policyFor(DOMAIN.toUpperCase())]);
    for (const found of both)
      expect(found).toMatchObject({ policy: { mode: "enforce", mx: ["mx.in.test"], id: "one" } });
    expect(await modeOf(sts)).toBe("enforce");
    expect(host.requests.items).toHaveLength(1);
    expect(host.requests.items[0]).toMatchObject({
      method: "GET",
      path: "/.well-known/mta-sts.txt",
      body: "",
    });
    expect(host.requests.items[0]?.headers.get("host")).toStartWith(`mta-sts.${DOMAIN}`);
    expect(saved.get(DOMAIN)).toEqual({
      domain: DOMAIN,
      id: "one",
      mode: "enforce",
      mx: ["mx.in.test"],
      maxAgeSeconds: WEEK_SECONDS,
      fetchedAt: clock.now(),
    });
  });

  test("a policy is not fetched without its record", async () => {
    announce("not an id");
    expect(await modeOf(mtaSts())).toBe("no policy");
    expect(host.requests.items).toEqual([]);
  });

  test.each(["[127.0.0.1]", "a@in.test", "in.test/x", "in.test:25", "in test", "in..test", ""])(
    "a policy is not fetched at %j",
    async (domain) => {
      const before = dns.count();
      expect(await modeOf(mtaSts(), domain)).toBe("no policy");
      expect(dns.count()).toBe(before);
    },
  );

  test("a policy may have a media type with parameters, and chunked encoding", async () => {
    const chunks = [POLICY.slice(0, 20), POLICY.slice(20)];
    host.answer(
      () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              const next = chunks.shift();
              if (next === undefined) controller.close();
              else controller.enqueue(Buffer.from(next));
            },
          }),
          { headers: { "content-type": "Text/Plain; charset=utf-8" } },
        ),
    );
    expect(await modeOf(mtaSts())).toBe("enforce");
  });
});

test("octets of an answer are read as they are, up to its length", async () => {
  const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
  const sink = startRawSink(
    `${head}Content-Length: ${POLICY.length}\r\n\r\n${POLICY}\0trailing`,
    "wait",
    cert,
  );
  stops.push(sink.stop);
  expect(await modeOf(mtaSts({ port: sink.port }))).toBe("enforce");
});

describe("a fetch without a policy", () => {
  const ok = { "content-type": "text/plain" };
  test.each<[what: string, answer: () => Response]>([
    ["of another media type", () => new Response(POLICY, { headers: { "content-type": "text/html" } })],
    ["of no media type", () => new Response(Buffer.from(POLICY))],
    [
      "of a media type that only begins like the right one",
      () => new Response(POLICY, { headers: { "content-type": "text/plainer" } }),
    ],
    [
      "of a redirect",
      () => new Response(null, { status: 302, headers: { location: `https://127.0.0.1:${host.port}/x` } }),
    ],
    [
      "of a redirect with a policy in it",
      () => new Response(POLICY, { status: 301, headers: { ...ok, location: "/x" } }),
    ],
    ["of an error", () => new Response(POLICY, { status: 404, headers: ok })],
    ["of success without content", () => new Response(null, { status: 204, headers: ok })],
    ["of a text that is not a policy", () => new Response("hello", { headers: ok })],
    ["of NULs", () => new Response("\0".repeat(5000), { headers: ok })],
    ["of 100 000 patterns", () => new Response(POLICY + "mx: mx.in.test\n".repeat(100_000), { headers: ok })],
    ["of more than 64 KiB", () => new Response(POLICY.padEnd(MAX_POLICY_OCTETS + 1, " "), { headers: ok })],
  ])("%s", async (_, given) => {
    host.answer(given);
    expect(await modeOf(mtaSts())).toBe("no policy");
    expect(host.requests.items).toHaveLength(1);
    expect(saved.size).toBe(0);
  });

  const head = (fields: string): string =>
    `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${fields}\r\n${POLICY}`;
  test.each([
    ["cut short of its length", head("Content-Length: 9999\r\n"), "end"],
    [
      "cut short of its last chunk",
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" +
        `${POLICY.length.toString(16)}\r\n${POLICY}\r\n`,
      "end",
    ],
    ["that ends when its connection closes", head(""), "end"],
    ["that never ends", head(""), "endless"],
    ["whose head never ends", "HTTP/1.1 200 OK\r\nX: ", "endless"],
    ["that is not HTTP", POLICY, "end"],
  ] as const)("%s", async (_, given, then) => {
    const sink = startRawSink(given, then, cert);
    stops.push(sink.stop);
    expect(await modeOf(mtaSts({ port: sink.port }))).toBe("no policy");
  });

  test("a fetch without a policy of a host whose certificate is invalid", async () => {
    const certs = [
      await makeCert([`mta-sts.${DOMAIN}`]),
      await makeCert(["other.test"], ca),
      await makeCert([DOMAIN], ca),
      await makeExpiredCert([`mta-sts.${DOMAIN}`], ca),
    ];
    for (const wrong of certs) {
      const sink = startStsHost(wrong, POLICY);
      stops.push(() => sink.stop());
      expect(await modeOf(mtaSts({ port: sink.port }))).toBe("no policy");
      expect(sink.requests.items).toEqual([]);
    }
  });

  test("a fetch without a policy of a private address, unless that is allowed", async () => {
    expect(await modeOf(mtaSts({ allowPrivate: false }))).toBe("no policy");
    expect(host.requests.items).toEqual([]);
  });
});

describe("a host that is slow", () => {
  test("a host that is slow delays mail no longer than its time; then mail goes as without it, and it is fetched again after a pause", async () => {
    const sink = startRawSink(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nv",
      "wait",
      cert,
    );
    stops.push(sink.stop);
    const sts = mtaSts({ port: sink.port });
    const waiting = modeOf(sts);
    await sink.answered.reached(1);
    clock.advance(FETCH_WAIT_MS);
    expect(await waiting).toBe(`the MTA-STS policy of ${DOMAIN} is still being fetched`);
    clock.advance(FETCH_TIMEOUT_MS);
    await sink.closed.reached(1);
    expect(await modeOf(sts)).toBe("no policy");
    clock.advance(FAILURE_PAUSE_SECONDS * 1000 - 1);
    expect(await modeOf(sts)).toBe("no policy");
    expect(sink.connections.items).toHaveLength(1);
  });

  test("a host that is slow is fetched again when the pause after a failure is over", async () => {
    answer("x", {}, 500);
    const sts = mtaSts();
    expect(await modeOf(sts)).toBe("no policy");
    answer(POLICY);
    expect(await modeOf(sts)).toBe("no policy");
    clock.advance(FAILURE_PAUSE_SECONDS * 1000);
    expect(await modeOf(sts)).toBe("enforce");
    expect(host.requests.items).toHaveLength(2);
  });
});

describe("a stored policy", () => {
  test("a stored policy holds if the record disappears and the host fails, over a restart, until it expires", async () => {
    expect(await modeOf(mtaSts())).toBe("enforce");
    dns.remove(`_mta-sts.${DOMAIN}`);
    answer("gone", {}, 404);
    const restarted = mtaSts();
    clock.advance(WEEK_SECONDS * 1000 - 1);
    expect(await modeOf(restarted)).toBe("enforce");
    clock.advance(1);
    expect(await modeOf(restarted)).toBe("no policy");
    expect(await modeOf(mtaSts())).toBe("no policy");
  });

  test("a stored policy holds while the name server fails", async () => {
    expect(await modeOf(mtaSts())).toBe("enforce");
    dns.behave("servfail", `_mta-sts.${DOMAIN}`);
    try {
      expect(await modeOf(mtaSts())).toBe("enforce");
    } finally {
      dns.behave("answer", `_mta-sts.${DOMAIN}`);
    }
  });

  test("a stored policy is renewed when the id changes, and the mail that noticed still uses the older one", async () => {
    const sts = mtaSts();
    await modeOf(sts);
    announce("two");
    answer(policyText("mode: none", "max_age: 86400"));
    const found = await sts.policyFor(DOMAIN);
    expect(found).toMatchObject({ policy: { id: "one" } });
    if (found.kind === "found") expect(await found.renewed()).toMatchObject({ id: "two", mode: "none" });
    expect(await modeOf(sts)).toBe("none");
    expect(saved.get(DOMAIN)).toMatchObject({ id: "two", mode: "none" });
  });

  test("a stored policy holds if its renewal fails", async () => {
    const sts = mtaSts();
    await modeOf(sts);
    announce("two");
    answer("mode: none");
    expect(await renewed(sts)).toBeNull();
    expect(await modeOf(sts)).toBe("enforce");
    expect(saved.get(DOMAIN)).toMatchObject({ id: "one" });
  });

  test("a stored policy is renewed each day even if its id stays or the record is suppressed", async () => {
    const sts = mtaSts();
    await modeOf(sts);
    clock.advance(REFRESH_AFTER_SECONDS * 1000 - 1);
    expect(await renewed(sts)).toBeNull();
    dns.remove(`_mta-sts.${DOMAIN}`);
    clock.advance(1);
    expect(await renewed(sts)).toMatchObject({ id: "one", fetchedAt: clock.now() });
    expect(host.requests.items).toHaveLength(2);
  });

  test("a stored policy of no lifetime is used once and fetched again", async () => {
    answer(policyText("mode: enforce", "mx: mx.in.test", "max_age: 0"));
    const sts = mtaSts();
    expect(await modeOf(sts)).toBe("enforce");
    expect(await modeOf(sts)).toBe("enforce");
    expect(host.requests.items).toHaveLength(2);
  });

  test("a stored policy is not replaced by a store read that began before it came", async () => {
    const early = Promise.withResolvers<null>();
    const loads = [early.promise];
    const sts = mtaSts({ store: { ...store, load: async () => loads.shift() ?? null } });
    const first = modeOf(sts);
    expect(await modeOf(sts)).toBe("enforce");
    early.resolve(null);
    expect(await first).toBe("enforce");
    dns.remove(`_mta-sts.${DOMAIN}`);
    expect(await modeOf(sts)).toBe("enforce");
    expect(host.requests.items).toHaveLength(1);
  });

  test("a stored policy that cannot be read from the store puts the mail off", async () => {
    const broken = { ...store, load: () => Promise.reject(new Error("disk")) };
    expect(await modeOf(mtaSts({ store: broken }))).toContain("cannot be looked up");
  });

  test("a stored policy that cannot be saved stays in the process", async () => {
    const broken = { ...store, save: () => Promise.reject(new Error("disk")) };
    const sts = mtaSts({ store: broken });
    expect(await modeOf(sts)).toBe("enforce");
    expect(await modeOf(sts)).toBe("enforce");
    expect(host.requests.items).toHaveLength(1);
  });
});
