import { describe, expect, test } from "bun:test";
import { manualClock } from "../../../support/manual-clock.ts";
import { testLanes } from "../../../support/lanes.ts";
import { byLane, PROVIDERS, providerLane } from "../../../../src/flows/lanes/providers.ts";

const HOSTS: readonly (readonly [whose: string, lane: string, hosts: readonly string[]])[] = [
  ["gmail.com", "google", ["gmail-smtp-in.l.google.com", "alt1.gmail-smtp-in.l.google.com"]],
  [
    "a Workspace customer",
    "google",
    ["aspmx.l.google.com", "alt2.aspmx.l.google.com", "aspmx2.googlemail.com"],
  ],
  ["a new Workspace customer", "google", ["smtp.google.com"]],
  ["outlook.com", "outlook", ["outlook-com.olc.protection.outlook.com"]],
  ["a customer of Microsoft 365", "microsoft365", ["contoso-com.mail.protection.outlook.com"]],
  ["a customer of Microsoft 365 with DANE", "microsoft365", ["contoso-com.r-v1.mx.microsoft"]],
  ["yahoo.com", "yahoo", ["mta5.am0.yahoodns.net", "mta6.am0.yahoodns.net", "mta7.am0.yahoodns.net"]],
  ["yahoo.co.uk", "yahoo", ["mx-eu.mail.am0.yahoodns.net"]],
  ["att.net", "yahoo", ["al-ip4-mx-vip1.prodigy.net", "ff-ip4-mx-vip2.prodigy.net"]],
  ["icloud.com", "apple", ["mx01.mail.icloud.com", "mx02.mail.icloud.com"]],
  ["gmx.de", "united-internet", ["mx00.emig.gmx.net", "mx01.emig.gmx.net"]],
  ["web.de", "united-internet", ["mx-ha02.web.de", "mx-ha03.web.de"]],
  ["a customer of IONOS", "united-internet", ["mx00.ionos.de", "mx01.1and1.co.uk"]],
  ["orange.fr", "orange", ["smtp-in.orange.fr"]],
  ["laposte.net", "laposte", ["smtpz4.laposte.net"]],
  ["qq.com", "tencent", ["mx1.qq.com", "mx2.qq.com", "mx3.qq.com"]],
  ["163.com", "netease", ["163mx01.mxmail.netease.com", "163mx02.mxmail.netease.com"]],
  ["mail.ru", "mail.ru", ["mxs.mail.ru"]],
  ["yandex.ru", "yandex", ["mx.yandex.ru"]],
  ["comcast.net", "comcast", ["mx1a1.comcast.net", "mx2h1.comcast.net"]],
  ["t-online.de", "t-online", ["mx00.t-online.de", "mx01.t-online.de"]],
  [
    "a customer of Proofpoint",
    "proofpoint:00123456",
    ["mx0a-00123456.pphosted.com", "mx0b-00123456.pphosted.com"],
  ],
  [
    "a customer of Mimecast",
    "mimecast:eu",
    ["eu-smtp-inbound-1.mimecast.com", "eu-smtp-inbound-2.mimecast.com"],
  ],
  [
    "a customer of Barracuda",
    "barracuda:123456",
    ["d123456a.ess.barracudanetworks.com", "d123456b.ess.barracudanetworks.com"],
  ],
];

/** A host with each of its ends replaced by a domain that a stranger may own. */
function counterfeits(host: string): string[] {
  const labels = host.split(".");
  return labels.flatMap((_, kept) =>
    ["evil.test", "a.tv", "ab.io", "co.uk.test"].map((end) => [...labels.slice(0, kept), end].join(".")),
  );
}

describe("the lane of the MX hosts of", () => {
  test.each(HOSTS)("%s is %s", (_, lane, hosts) => {
    expect(providerLane(hosts)?.name).toBe(lane);
  });

  test("a stranger whose host is named as a provider's is no provider's", () => {
    const strangers = HOSTS.flatMap(([, , hosts]) => hosts.flatMap(counterfeits));
    expect(strangers.filter((host) => providerLane([host]) !== null)).toEqual([]);
  });

  test.each([
    ["a host of a provider that takes no mail", ["www.google.com"]],
    ["a name that ends like a provider's", ["evil-gmail-smtp-in.l.google.com.evil.test"]],
    ["a provider's host and a stranger's", ["aspmx.l.google.com", "mx.evil.test"]],
    ["hosts of two customers", ["mx0a-00123456.pphosted.com", "mx0a-00654321.pphosted.com"]],
    ["no host", []],
  ])("%s is no provider's", (_, hosts) => {
    expect(providerLane(hosts)).toBeNull();
  });
});

test("the hosts of a domain are split by lane, in the order of preference of each lane's first host", () => {
  const hosts = ["mx1.own.test", "aspmx.l.google.com", "mx2.own.test", "mx0a-00123456.pphosted.com"];
  const customers = ["mx0b-00654321.pphosted.com", "alt1.aspmx.l.google.com"];
  const lanes = byLane([...hosts, ...customers].map((name) => ({ name })));
  expect(lanes.map((lane) => lane.map(({ name }) => name))).toEqual([
    ["mx1.own.test", "mx2.own.test"],
    ["aspmx.l.google.com", "alt1.aspmx.l.google.com"],
    ["mx0a-00123456.pphosted.com"],
    ["mx0b-00654321.pphosted.com"],
  ]);
});

test("each provider has a name of its own, usable limits, and a source with its date", () => {
  expect(new Set(PROVIDERS.map(({ name }) => name)).size).toBe(PROVIDERS.length);
  for (const { connections, messages, rate, source } of PROVIDERS) {
    expect(Math.min(connections, messages, rate)).toBeGreaterThan(0);
    expect(source).toMatch(/\d{4}-\d{2}/);
  }
});

test("hosts that are named as a provider's lane have a lane of another name", () => {
  const lanes = testLanes(manualClock());
  for (const { name } of PROVIDERS) {
    const lane = lanes.ofHosts([name], "");
    expect(lane).not.toBe(lanes.named(name));
    expect(lane.provider).toBeNull();
  }
});

test("forty customers of one provider share one lane with its limits", () => {
  const lanes = testLanes(manualClock());
  const customers = Array.from({ length: 40 }, (_, nth) => `c${nth}-com.mail.protection.outlook.com`);
  const found = new Set(customers.map((host) => lanes.ofHosts([host], "")));
  expect([...found].map(({ name, limits }) => [name, limits.connections])).toEqual([["microsoft365", 5]]);
});
