import { createServer } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Config, loadConfig } from "../../src/config.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import { dkimTarget } from "../../src/core/own-names.ts";
import { dkimRecord } from "../../src/mail/auth/dkim.ts";
import { textStrings } from "../../src/net/zone/records.ts";
import { publishedKeys } from "../../src/store/domains/dkim-keys.ts";
import type { DnsRecord, TestDns } from "./dns.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { freePort, startRedis, type TestRedis } from "./redis.ts";
import { startService, type TestService, verifiedDomain } from "./service.ts";
import { makeCa, makeCert } from "./tls.ts";

/**
 * A public-looking address, unlike those reserved for documentation. Only the test's own zone is queried for it.
 */
export const PUBLIC_IP = "203.0.112.1";
export const REVERSE_NAME = "1.112.0.203.in-addr.arpa";
export const ZONE = "mail.test";
export const CUSTOMER = "customer.test";

/** The start of authority of the customer's zone. */
export const CUSTOMER_SOA: DnsRecord = {
  name: CUSTOMER,
  type: "SOA",
  data: {
    mname: "ns.test",
    rname: "hostmaster.test",
    serial: 1,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: 1,
  },
};

/** An installation in which doctor finds no fault: zone published, domain verified, certificate, Redis. */
export interface Healthy {
  service: TestService;
  redis: TestRedis;
  /** The settings that doctor needs to check it. */
  settings: Record<string, string>;
  config: Config;
  /** PEM of the authority of its certificate. */
  ca: string;
  /** A mail server that greets. */
  greeter: { port: number };
  stop(): Promise<void>;
}

/** Starts the service with everything it depends on, and a verified domain, so that doctor finds no fault. */
export async function startHealthy(): Promise<Healthy> {
  const folder = newFolder("healthy");
  const redis = await startRedis();
  await redis.command("config", "set", "appendonly", "yes");
  const ca = await makeCa();
  const { key, cert } = await makeCert([`mx.${ZONE}`, "api.example.com"], ca);
  const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  writeFileSync(keyFile, key);
  writeFileSync(certFile, `${cert}\n${ca.cert}`);
  const tlsPort = String(freePort());
  const own = {
    SERVICE_DOMAIN: ZONE,
    DELIVERY: "mx",
    PUBLIC_IPS: PUBLIC_IP,
    PUBLIC_URL: `https://api.example.com:${tlsPort}`,
    TLS_PORT: tlsPort,
    OWNER_EMAIL: "ops@example.com",
    SMTP_TLS_KEY: keyFile,
    SMTP_TLS_CERT: certFile,
    REDIS_URL: redis.url,
  };
  const service = await startService(own);
  await publishZone(service);
  service.dns.add({ name: "api.example.com", type: "A", data: "127.0.0.1" });
  await verifiedDomain(service, CUSTOMER);
  service.dns.add({ name: CUSTOMER, type: "A", data: PUBLIC_IP }, CUSTOMER_SOA);
  await publishKeys(service);
  const settings = {
    ...own,
    DATA_DIR: service.folder,
    DNS_SERVERS: service.dns.address,
    DNS_PORT: "1",
    SMTP_HOST: "127.0.0.1",
    SMTP_PORT: String(service.smtpPort),
  };
  const greeter = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write("220 mx.example.net ESMTP\r\n");
    socket.on("data", (said) =>
      socket.write(`${said}`.startsWith("QUIT") ? "221 bye\r\n" : "250 mx.example.net\r\n"),
    );
  });
  const port = await new Promise<number>((resolve) => {
    greeter.listen(0, "127.0.0.1", () => {
      const address = greeter.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  return {
    service,
    redis,
    settings,
    config: loadConfig(settings),
    ca: ca.cert,
    greeter: { port },
    async stop() {
      greeter.close();
      await service.stop();
      await redis.stop();
      removeFolder(folder);
    },
  };
}

/** Adds our zone to the test's name server as the world would see it, and the name of our address. */
export async function publishZone({ app: { db }, dns }: Pick<TestService, "app" | "dns">): Promise<void> {
  const own = { serviceDomain: ZONE, publicIps: [PUBLIC_IP], publicUrl: "https://api.example.com" };
  const settings = { ...loadConfig({}), ...own };
  const zone = await openZone({ db, clock: systemClock }, settings);
  add(dns, [await zone.soa(), ...zone.records]);
  dns.remove(REVERSE_NAME);
  dns.add({ name: REVERSE_NAME, type: "PTR", data: `mx.${ZONE}` });
}

/** Publishes every DKIM key of ours at the name that the aliases of domains lead to. */
export async function publishKeys({ app: { db }, dns }: TestService): Promise<void> {
  for (const { token, publicKey } of await publishedKeys(db, Date.now(), "", 10))
    dns.add({ name: dkimTarget(token, ZONE), type: "TXT", data: textStrings(dkimRecord(publicKey)) });
}

function add(dns: TestDns, records: readonly { name: string; type: string; data: unknown }[]): void {
  for (const { name } of records) dns.remove(name.replace(/^\*/, "doctor"));
  const types = ["A", "AAAA", "MX", "NS", "SOA", "TXT"] as const;
  for (const { name, type: text, data } of records) {
    const type = types.find((each) => each === text);
    // The test's server knows no wildcards, so the queried name below it is added instead.
    const shown = type === "TXT" ? textStrings(String(data)) : data;
    if (type !== undefined) dns.add({ name: name.replace(/^\*/, "doctor"), type, data: shown });
  }
}
