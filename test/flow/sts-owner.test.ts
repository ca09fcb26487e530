import { afterEach, expect, test } from "bun:test";
import { log } from "../../src/log.ts";
import { createMtaSts, MAX_CONCURRENT_FETCHES, type MtaSts } from "../../src/net/mta-sts.ts";
import { FETCH_TIMEOUT_MS } from "../../src/net/mta-sts-fetch.ts";
import type { Resolver } from "../../src/net/dns/resolver.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { policyText, startStsHost } from "../support/sts-host.ts";
import { makeCa, makeCert } from "../support/tls.ts";
import { mayReach } from "../support/public-guard.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Policies of the domains below good.test and evil.test. */
function policies(port: number, ca: string, clock: ManualClock): MtaSts {
  const resolver: Resolver = {
    async resolve(name, type) {
      const ip = name.endsWith("good.test") ? "127.0.0.1" : "127.0.0.9";
      if (type === "A") return { status: "ok", records: [{ name, type, data: ip }], authentic: false };
      if (type !== "TXT") return { status: "nodata" };
      return { status: "ok", records: [{ name, type, data: "v=STSv1; id=one;" }], authentic: false };
    },
  };
  return createMtaSts(
    {
      clock,
      resolver,
      mayReach,
      log: log("net"),
      ca,
      store: { load: async () => null, save: async () => undefined },
    },
    { port, allowPrivate: true },
  );
}

test("policy hosts of one domain that hang do not delay the first policy of another", async () => {
  const ca = await makeCa();
  const cert = await makeCert(["mta-sts.good.test"], ca);
  const host = startStsHost(cert, policyText("mode: enforce", "mx: mx.good.test", "max_age: 604800"));
  // The hosts of *.evil.test accept the connection and never answer. They cost their owner one wildcard record
  // each.
  const silent = Bun.listen({
    hostname: "127.0.0.9",
    port: host.port,
    socket: { data: () => undefined },
  });
  stops.push(
    () => host.stop(),
    () => silent.stop(true),
  );
  const clock = manualClock();
  const mtaSts = policies(host.port, ca.cert, clock);
  stops.push(() => clock.advance(2 * FETCH_TIMEOUT_MS));
  const evil = Array.from({ length: MAX_CONCURRENT_FETCHES }, (_, at) =>
    mtaSts.policyFor(`d${at}.evil.test`),
  );
  // One is refused as soon as its owner has all the places that it can get.
  expect(await Promise.race(evil)).toMatchObject({ kind: "deferred" });
  const good = await mtaSts.policyFor("good.test");
  expect(good).toMatchObject({ kind: "found", policy: { domain: "good.test" } });
});

test("a domain may have any number of policies below it fetched one after another", async () => {
  const ca = await makeCa();
  const names = Array.from({ length: MAX_CONCURRENT_FETCHES }, (_, at) => `d${at}.good.test`);
  const cert = await makeCert(
    names.map((name) => `mta-sts.${name}`),
    ca,
  );
  const host = startStsHost(cert, policyText("mode: enforce", "mx: mx.good.test", "max_age: 604800"));
  stops.push(() => host.stop());
  const mtaSts = policies(host.port, ca.cert, manualClock());
  for (const domain of names)
    expect(await mtaSts.policyFor(domain)).toMatchObject({ kind: "found", policy: { domain } });
});
