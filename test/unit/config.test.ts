import { describe, expect, test } from "bun:test";
import { ConfigError, loadConfig } from "../../src/config.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { unreadVariables } from "../../src/config/unread-variables.ts";

/** 16 octets in base64. */
const KEY = "MDEyMzQ1Njc4OWFiY2RlZg==";
/** A bucket and its keys. */
const BUCKET = { CONTENT_STORE: "s3://mail", S3_ACCESS_KEY_ID: "a", S3_SECRET_ACCESS_KEY: "b" };

function problems(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("settings", () => {
  test("an empty environment gives the defaults", () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      port: 3000,
      publicUrl: "http://localhost:3000",
      databaseUrl: "file:data/postrider.db",
      redisUrl: null,
      serviceDomain: "postrider.localhost",
      delivery: "capture",
      smtpPort: 2525,
      deliveryRetrySeconds: [60, 300, 900, 1800, 3600, 7200, 14400, 21600],
      destinationConnections: 5,
      maxRecipients: 50,
    });
    expect([...config.roles]).toEqual(["api", "smtp", "worker"]);
    expect(config.plans.pro).toEqual({ perSecond: 100, burst: 200 });
    expect(config.tiers.basic).toBe(2000);
  });

  test.each<[Record<string, string>, string]>([
    [{}, "capture"],
    [{ SERVICE_DOMAIN: "mail.example" }, "mx"],
    [{ SERVICE_DOMAIN: "mail.example", SMTP_RELAY_URL: "smtp://relay.example" }, "relay"],
    [{ SERVICE_DOMAIN: "mail.example", DELIVERY: "capture" }, "capture"],
  ])("%p delivers by %s", (env, delivery) => {
    expect(loadConfig(env).delivery).toBe(delivery as never);
  });

  test.each<[string, string]>([
    ["PORT", "70000"],
    ["PORT", "x"],
    ["PORT", "-1"],
    ["PUBLIC_URL", "ftp://x"],
    ["DATABASE_URL", "postgres://x"],
    ["REDIS_URL", "localhost:6379"],
    ["REDIS_URL", "redis://redis.example/queues"],
    ["REDIS_URL", "redis://:100%@redis.example"],
    ["DATABASE_AUTH_TOKEN", "a token\nof two lines"],
    ["ROLES", "api,cook"],
    ["ROLES", ","],
    ["SERVICE_DOMAIN", "not a name"],
    ["SERVICE_DOMAIN", `${"a.".repeat(97)}aaa`],
    ["OWNER_EMAIL", "nobody"],
    ["ROOT_API_KEY", "a".repeat(31)],
    ["ROOT_API_KEY", `${"a".repeat(31)} b`],
    ["DELIVERY", "pigeon"],
    ["SMTP_RELAY_URL", "relay.example:25"],
    ["DNS_SERVERS", "dns.example"],
    ["HOST", "a b"],
    ["HOST", "häuser.example"],
    ["SMTP_HOST", "127.0.0.1:2525"],
    ["DNS_HOST", "localhost"],
    ["DNS_PORT", "off"],
    ["DNS_SECONDARIES", "192.0.2.53"],
    ["DNS_SECONDARIES", "192.0.2.53:0#to-second"],
    ["DNS_SECONDARIES", "ns2.example.net#to-second"],
    ["DNS_SECONDARIES", "192.0.2.53#to-second"],
    ["DNS_SECONDARY_NAMES", "192.0.2.53 and more"],
    ["DNS_TSIG_KEYS", `to-second:hmac-md5:${KEY}`],
    ["DNS_TSIG_KEYS", "to-second:hmac-sha256:MDEyMzQ1"],
    ["DNS_TSIG_KEYS", `to second:hmac-sha256:${KEY}`],
    ["DNS_TSIG_KEYS", `k:hmac-sha256:${KEY},K:hmac-sha256:${KEY}`],
    ["PUBLIC_IPS", "mail.example"],
    ["PUBLIC_IPS", "192.0.2.0/24"],
    ["PUBLIC_IPS", "192.0.2.1,fe80::1%eth0"],
    ["PUBLIC_IPS", Array.from({ length: 17 }, (_, at) => `192.0.2.${at}`).join()],
    ["ALLOW_PRIVATE_MX", "yes"],
    ["DELIVERY_RETRY_SECONDS", "1,x"],
    ["WEBHOOK_TIMEOUT_SECONDS", "soon"],
    ["DESTINATION_CONNECTIONS", "0"],
    ["EGRESS", "203.0.113.5,mx.example.com"],
    ["EGRESS", "203.0.113.5,203.0.113.5@bulk"],
    ["EGRESS", "203.0.113.5@bulk"],
    ["EGRESS", "203.0.113.5@bulk mail,203.0.113.6"],
    ["SMTP_OUT_IPV6", "no"],
    ["WARM_UP", "203.0.113.5"],
    ["WARM_UP", "203.0.113.5:2026-02-30"],
    ["WARM_UP", "203.0.113.5:2026-03-01"],
    ["PLAN_FREE", "fast"],
    ["TIER_NEW", "-1"],
    ["DEFAULT_PLAN", "gold"],
    ["SMTP_TLS_KEY", "/only/the/key.pem"],
    ["ACME_EMAIL", "operator"],
    ["ACME_DIRECTORY", "http://ca.example/dir"],
    ["ACME_EAB_KID", "only-the-kid"],
    ["ACME_EAB_HMAC_KEY", "not base64url!!!"],
    ["LOG_LEVEL", "loud"],
    ["DNS_SERVERS", "::::"],
    ["DNS_SERVERS", "192.0.2.1:65536"],
    ["DNS_SERVERS", "192.0.2.1:0"],
    ["DNS_SERVERS", "192.0.2.1,[192.0.2.2]:53"],
    ["SMTP_RELAY_URL", "smtp://"],
    ["SMTP_RELAY_URL", "smtp:relay.example"],
    ["SMTP_RELAY_URL", "smtp://user:25/word@relay.example"],
    ["SMTP_RELAY_URL", "smtp://relay.example?insecure=yes"],
    ["SMTP_RELAY_URL", "smtp://user:%ff@relay.example"],
    ["SMTP_RELAY_URL", "smtp://:pass@relay.example"],
    ["SMTP_RELAY_URL", "smtp://user@relay.example"],
    ["SMTP_RELAY_URL", "smtp://relay.example:0"],
    ["REDIS_URL", "redis://127.0.0.1/5?db=3"],
    ["REDIS_URL", "redis://127.0.0.1?keyPrefix=x"],
    ["SMTP_OUT_PORT", "0"],
    ["DATABASE_URL", "file:"],
    ["DATABASE_URL", "file:///"],
    ["DATABASE_URL", "libsql:db"],
    ["DATABASE_URL", "file:x.db?mode=ro"],
    ["PLAN_", "1/1"],
    ["TIER_", "1"],
    ["DNS_SERVERS", Array.from({ length: 9 }, (_, at) => `192.0.2.${at}`).join()],
    ["WEBHOOK_TIMEOUT_SECONDS", "0"],
    ["DEFAULT_PLAN", "toString"],
    ["DEFAULT_TRUST_TIER", "constructor"],
    ["PUBLIC_URL", "https://mail.example.com/?a=b"],
    ["PUBLIC_URL", "https://mail.example.com/postrider"],
    ["PUBLIC_URL", "https://mail.example.com//"],
    ["PUBLIC_URL", "https://user@mail.example.com"],
    ["PUBLIC_URL", "https://:password@mail.example.com"],
    ["S3_ENDPOINT", "https://s3.example.com/?a=b"],
    ["PUBLIC_URL", "https:mail.example.com"],
    ["PUBLIC_URL", "https:\\\\mail.example.com"],
    ["PUBLIC_URL", " https://mail.example.com"],
    ["PUBLIC_URL", "https://mail.example.com/ "],
    ["PUBLIC_URL", "https://mail.exam\nple.com"],
    ["DATABASE_URL", " file:x.db"],
    ["DATABASE_URL", "file:x.db\r"],
    ["DATABASE_URL", "FILE:x.db"],
    ["DATABASE_URL", "file::memory:"],
    ["DATABASE_URL", "file://var/x.db"],
    ["SMTP_RELAY_URL", "smtp://relay.example:25 "],
  ])("%s=%s is refused with an error that names the setting", (name, value) => {
    expect(problems({ [name]: value }).join()).toContain(name);
  });

  test.each(["::", "fe80::1%eth0", "localhost", "db_1"])("%s is accepted as a listen address", (host) => {
    expect(loadConfig({ HOST: host, SMTP_HOST: host })).toMatchObject({ host, smtpHost: host });
    expect(loadConfig({ HOST: "[::1]", SMTP_HOST: "[::]" })).toMatchObject({ host: "::1", smtpHost: "::" });
  });

  test("the name server is off by default and listens on every address unless told otherwise", () => {
    expect(loadConfig({})).toMatchObject({ dnsPort: null, dnsHost: ["0.0.0.0"], publicIps: [] });
    const ips = Array.from({ length: 16 }, (_, at) => `192.0.2.${at}`);
    const config = loadConfig({ DNS_PORT: "53", DNS_HOST: "192.0.2.1, ::1", PUBLIC_IPS: ips.join() });
    expect(config).toMatchObject({ dnsPort: 53, dnsHost: ["192.0.2.1", "::1"], publicIps: ips });
  });

  test("secondaries have an address, a port and a key, whose secret no error shows", () => {
    const config = loadConfig({
      DNS_SECONDARIES: "192.0.2.53#To-Second, [2001:db8::53]:5353#to-second,2001:db8::54#to-second",
      DNS_TSIG_KEYS: `TO-second:HMAC-SHA256:${KEY}`,
      DNS_SECONDARY_NAMES: "NS2.example.net.",
    });
    expect(config).toMatchObject({
      dnsSecondaries: [
        { ip: "192.0.2.53", port: 53, keyName: "to-second" },
        { ip: "2001:db8::53", port: 5353, keyName: "to-second" },
        { ip: "2001:db8::54", port: 53, keyName: "to-second" },
      ],
      dnsTsigKeys: [{ name: "to-second", secret: Buffer.from("0123456789abcdef") }],
      dnsSecondaryNames: ["ns2.example.net"],
    });
    expect(problems({ DNS_TSIG_KEYS: `bad name:hmac-sha256:${KEY}` }).join()).not.toContain(KEY);
  });

  test("an address that is repeated, or repeated in IPv6 notation, counts once", () => {
    const addresses = "192.0.2.1,::ffff:192.0.2.1,2001:DB8::1,2001:db8:0::1,192.0.2.2";
    const each = ["192.0.2.1", "2001:db8::1", "192.0.2.2"];
    expect(loadConfig({ DNS_HOST: addresses, PUBLIC_IPS: addresses })).toMatchObject({
      dnsHost: each,
      publicIps: each,
    });
  });

  test("one error reports all problems", () => {
    expect(problems({ PORT: "x", ROLES: "cook", DELIVERY: "pigeon", PLAN_FREE: "fast" }).length).toBe(4);
  });

  test.each<[Record<string, string>, string[]]>([
    [{ DELIVERY: "relay", PORT: "x" }, ["PORT", "DELIVERY=relay needs SMTP_RELAY_URL"]],
    // An invalid relay URL is reported as invalid, not as missing.
    [{ DELIVERY: "relay", SMTP_RELAY_URL: "smtp://" }, ["SMTP_RELAY_URL"]],
    [{ ...BUCKET, CONTENT_STORE: "s3:///prefix" }, ["CONTENT_STORE"]],
    [{ ...BUCKET, AWS_SESSION_TOKEN: "stray" }, ["AWS_SESSION_TOKEN"]],
    [{ PORT: "25", SMTP_PORT: "25", SMTP_HOST: "192.0.2.1" }, ["PORT and SMTP_PORT (25)"]],
    [{ DNS_PORT: "2525", DNS_HOST: "::1,192.0.2.1", PORT: "x" }, ["PORT=", "SMTP_PORT and DNS_PORT"]],
    [{ PORT: "53", HOST: "::", DNS_PORT: "53" }, ["PORT and DNS_PORT (53)"]],
    [{ SUBMISSION_PORT: "587", SUBMISSIONS_PORT: "587" }, ["SUBMISSION_PORT and SUBMISSIONS_PORT (587)"]],
    [{ SUBMISSION_PORT: "2525", SUBMISSION_HOST: "192.0.2.1" }, ["SMTP_PORT and SUBMISSION_PORT (2525)"]],
    [{ SERVICE_DOMAIN: "Mail.test", DNS_SECONDARY_NAMES: "ns2.mail.test" }, ["DNS_SECONDARY_NAMES"]],
    [{ DNS_SECONDARIES: "192.0.2.53#a", DNS_TSIG_KEYS: `b:hmac-sha256:${KEY}` }, ["DNS_SECONDARIES"]],
    [{ TEST_CONTROLS: "1" }, ["TEST_CONTROLS needs"]],
    [{ TEST_CONTROLS: "1", HOST: "0.0.0.0" }, ["TEST_CONTROLS needs"]],
    [{ TEST_CONTROLS: "1", HOST: "127.0.0.1", DELIVERY: "mx" }, ["TEST_CONTROLS needs"]],
    [{ DATABASE_URL: "http://db.example", DATABASE_SYNC_URL: "http://x.example" }, ["DATABASE_SYNC_URL"]],
  ])("contradictory settings are reported together with the other problems: %p", (env, starts) => {
    const told = problems(env);
    expect(told.length).toBe(starts.length);
    for (const [at, start] of starts.entries()) expect(told[at]).toStartWith(start);
  });

  test.each<[Record<string, string>]>([
    [{ AWS_SESSION_TOKEN: "stray" }],
    [{ ...BUCKET, AWS_SESSION_TOKEN: "" }],
    [{ ...BUCKET, AWS_SESSION_TOKEN: "stray", S3_SESSION_TOKEN: "" }],
    [{ ...BUCKET, AWS_SESSION_TOKEN: "stray", S3_SESSION_TOKEN: "ours" }],
  ])("an AWS session token without our own keys is not an error: %p", (env) => {
    expect(problems(env)).toEqual([]);
    expect(loadConfig(env).s3SessionToken).toBe(env.S3_SESSION_TOKEN || null);
  });

  test.each<[Record<string, string>]>([
    [{ PORT: "2525", ROLES: "api,worker" }],
    [{ PORT: "25", HOST: "192.0.2.1", SMTP_PORT: "25", SMTP_HOST: "192.0.2.2" }],
    [{ PORT: "25", HOST: "[::1]", SMTP_PORT: "25" }],
    [{ PORT: "0", SMTP_PORT: "0", DNS_PORT: "0" }],
    [{ SUBMISSIONS_PORT: "2525", SUBMISSION_HOST: "192.0.2.1", SMTP_HOST: "192.0.2.2" }],
  ])("one port may be used twice if addresses or roles differ: %p", (env) => {
    expect(problems(env)).toEqual([]);
  });

  test.each<[string, string]>([
    ["DNS_SERVERS", "192.0.2.1,192.0.2.1:5353,2001:db8::1,[2001:db8::1],[2001:db8::1]:5353"],
    ["REDIS_URL", "redis:///1"],
    ["REDIS_URL", "rediss://us%25er:p%C3%A4ss@redis.example:6380/2"],
    ["SERVICE_DOMAIN", `${"a.".repeat(97)}aa`],
    ["SMTP_RELAY_URL", "smtps://u%40x:%C3%A4%E2%82%ac%25:p@relay.example:465/?insecure=1"],
    ["DATABASE_URL", "file:x.db"],
    ["DATABASE_URL", "file:///var/x.db"],
    ["DATABASE_URL", "libsql://db.example"],
    ["WEBHOOK_TIMEOUT_SECONDS", "0.5"],
    ["PUBLIC_URL", "https://mail.example.com/"],
    ["S3_ENDPOINT", "https://s3.example.com/store/"],
  ])("%s=%s is accepted", (name, value) => {
    expect(problems({ [name]: value })).toEqual([]);
  });

  test("the public URL is written in the ASCII form that messages and headers need", () => {
    const { publicUrl } = loadConfig({ PUBLIC_URL: "https://Häuser.example/" });
    expect(publicUrl).toBe("https://xn--huser-gra.example");
  });

  test("an error about a secret does not contain the secret", () => {
    expect(problems({ ROOT_API_KEY: "hunter2" }).join()).not.toContain("hunter2");
  });

  test("if a secret is given as variable and file, the variable wins and a warning names it", () => {
    const twice = { ROOT_API_KEY: "k".repeat(40), ROOT_API_KEY_FILE: "/nowhere", MASTER_KEY_FILE: "" };
    const { rootApiKey, givenTwice } = loadConfig({ ...twice, MASTER_KEY: "m".repeat(40) });
    expect([rootApiKey, givenTwice]).toEqual(["k".repeat(40), ["ROOT_API_KEY"]]);
    expect(loadConfig({ ROOT_API_KEY: "k".repeat(40) }).givenTwice).toEqual([]);
  });

  test.each<[name: string, setting: string]>([
    ["SMTP_RELAY", "SMTP_RELAY_URL"],
    ["PUBLIC_IP", "PUBLIC_IPS"],
    ["public_url", "PUBLIC_URL"],
    ["SMPT_PORT", "SMTP_PORT"],
    ["SERVICE_DOMIAN", "SERVICE_DOMAIN"],
    ["OWNER_EMAIL_FILE", "OWNER_EMAIL"],
    ["MASTER_KEY_FIL", "MASTER_KEY_FILE"],
  ])("%s is reported as a variable that resembles %s", (name, setting) => {
    expect(loadConfig({ [name]: "1" }).unread).toEqual([{ name, setting }]);
  });

  test.each([
    "PATH",
    "HOME",
    "HOSTNAME",
    "LOGNAME",
    "LANG",
    "TERM",
    "SHELL",
    "PWD",
    "TMPDIR",
    "NODE_ENV",
    "SMTP",
    "HTTP_PROXY",
    "HTTP_PORT",
    "REDIS_PORT",
    "REDIS_SERVICE_HOST",
    "AWS_REGION",
    "POSTRIDER_PORT",
    "PGHOST",
    "SMTP_PORT",
    "PLAN_GOLD",
    "TIER_TRIAL",
    "MASTER_KEY_FILE",
  ])("%s is not reported as a misspelt setting", (name) => {
    const values: Record<string, string> = {
      SMTP_PORT: "25",
      PLAN_GOLD: "1/1",
      TIER_TRIAL: "1",
      MASTER_KEY_FILE: "/dev/null",
    };
    expect(unreadVariables({ [name]: values[name] ?? "1" }, SETTINGS)).toEqual([]);
  });

  test("an empty variable and a very long name are not compared with the settings", () => {
    expect(unreadVariables({ PUBLIC_IP: "", [`${"A_".repeat(33)}FILE`]: "1" }, SETTINGS)).toEqual([]);
  });

  test("plans and tiers can be changed and added", () => {
    const config = loadConfig({
      PLAN_FREE: "5/6",
      PLAN_GOLD: "unlimited",
      TIER_TRIAL: "10",
      DEFAULT_PLAN: "gold",
    });
    expect(config.plans).toMatchObject({ free: { perSecond: 5, burst: 6 }, gold: null });
    expect(config.tiers.trial).toBe(10);
  });

  test("no two settings share a name", () => {
    const names = SETTINGS.map((setting) => setting.name);
    expect(new Set(names).size).toBe(names.length);
  });
});
