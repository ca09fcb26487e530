import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { runHealth } from "../../src/flows/health/check.ts";
import { type RemoteParts, remoteChecks } from "../../src/flows/health/outside/remote.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { dnsServers } from "../../src/net/dns/servers.ts";
import { type MxOptions, startMx } from "../support/mx.ts";
import { type Healthy, startHealthy, ZONE } from "../support/healthy.ts";
import { freePort } from "../support/redis.ts";
import { makeCert } from "../support/tls.ts";

const START_MS = 180_000;
let healthy: Healthy;
const closing: (() => unknown)[] = [];
beforeAll(async () => {
  healthy = await startHealthy();
  healthy.service.dns.remove(`mx.${ZONE}`);
  healthy.service.dns.add({ name: `mx.${ZONE}`, type: "A", data: "127.0.0.1" });
}, START_MS);
afterAll(async () => {
  for (const close of closing) await close();
  await healthy?.stop();
});

/** Checks the installation of the test as from another machine, and returns its lines as `status name: message`. */
async function seen(more: Partial<RemoteParts> = {}): Promise<string[]> {
  const { config, ca, service } = healthy;
  const resolver = createResolver(
    { clock: systemClock },
    { servers: dnsServers(config.dnsServers), tries: 2 },
  );
  const parts = { clock: systemClock, resolver, ca, url: config.publicUrl, serviceDomain: ZONE };
  const lines = await runHealth(systemClock, remoteChecks({ ...parts, port: service.smtpPort, ...more }));
  return lines.map(({ status, name, message }) => `${status} ${name}: ${message}`);
}

function listener(options: MxOptions): Partial<RemoteParts> {
  const mx = startMx(options);
  closing.push(() => mx.stop());
  return { port: mx.port };
}

test("a sound installation is fine from another machine, at the addresses of its MX hosts", async () => {
  expect(await seen()).toEqual([
    expect.stringMatching(/^ok unsubscribe page: /),
    expect.stringMatching(/^ok port 25: .*mx\.mail\.test \[127\.0\.0\.1\]/),
  ]);
});

test("without the domain of the service only the unsubscribe page is checked", async () => {
  expect(await seen({ serviceDomain: null })).toEqual([expect.stringMatching(/^ok unsubscribe page: /)]);
});

test.each<[string, () => Promise<Partial<RemoteParts>> | Partial<RemoteParts>, RegExp]>([
  ["a closed port 25", () => ({ port: freePort() }), /^fail port 25: .*cannot be tried: connection failed/],
  [
    "a certificate for another name",
    async () => listener({ tls: await makeCert(["other.test"]) }),
    /^warn port 25: .*is for DNS:other\.test, not for mx\.mail\.test/,
  ],
  [
    "a role mailbox that is refused",
    async () =>
      listener({
        tls: await makeCert([`mx.${ZONE}`]),
        answers: { RCPT: (to) => (to.includes("<dmarc@") ? "550 5.1.1 no such user" : "250 ok") },
      }),
    /^fail port 25: .*refuses mail to dmarc@mail\.test/,
  ],
  [
    "a domain without MX host",
    () => ({ serviceDomain: "nobody.test" }),
    /^fail port 25: nobody\.test has no MX/,
  ],
])("from another machine %s is reported", async (_what, by, says) => {
  const [, line] = await seen(await by());
  expect(line).toMatch(says);
});
