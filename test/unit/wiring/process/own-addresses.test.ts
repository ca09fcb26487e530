import { expect, test } from "bun:test";
import { loadConfig } from "../../../../src/config.ts";
import { ownAddresses } from "../../../../src/wiring/process/own-addresses.ts";

const MACHINE = ["127.0.0.1", "192.0.2.9", "2001:db8::9"];
const ROWS: [what: string, env: Record<string, string>, own: string[]][] = [
  [
    "every address, if a listener is on all",
    { HOST: "0.0.0.0", SMTP_HOST: "192.0.2.1" },
    [...MACHINE, "192.0.2.1"],
  ],
  ["its listeners' alone", { HOST: "127.0.0.1", SMTP_HOST: "192.0.2.1" }, ["127.0.0.1", "192.0.2.1"]],
  ["no listener's that it has not", { HOST: "127.0.0.1", ROLES: "api" }, ["127.0.0.1"]],
  [
    "the name server's, if it is one",
    { HOST: "127.0.0.1", ROLES: "api", DNS_PORT: "53", DNS_HOST: "192.0.2.2,192.0.2.3" },
    ["127.0.0.1", "192.0.2.2", "192.0.2.3"],
  ],
  [
    "PUBLIC_IPS",
    { HOST: "127.0.0.1", ROLES: "worker", PUBLIC_IPS: "198.51.100.1,2001:DB8::0:1" },
    ["198.51.100.1", "2001:db8::1", "127.0.0.1"],
  ],
];

test.each(ROWS)("an installation's own addresses: %s", (_what, env, own) => {
  expect(ownAddresses(loadConfig(env), MACHINE).sort()).toEqual([...own].sort());
});
