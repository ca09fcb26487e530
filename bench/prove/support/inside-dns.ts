/** The zone of the run: names that lead inside at once, at the second lookup, or together with a public address. */
import { decode, encode, type Packet } from "dns-packet";
import type { TestDns } from "../../../test/support/dns.ts";
import { INSIDE_NAMES, PUBLIC_HOST } from "./spellings.ts";

/** Address of the honest endpoint, and an address without a listener. */
export const PUBLIC_IP = "8.8.4.4";
export const DOWN_IP = "9.9.9.10";

/** Names that lead inside only sometimes. `look` has the addresses of each lookup in turn; the last ones stay. */
export const REBOUND: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "later.example": [[PUBLIC_IP], ["127.0.0.1"]],
  "later-metadata.example": [[PUBLIC_IP], ["169.254.169.254"]],
  "first.example": [["127.0.0.1"], [PUBLIC_IP]],
  "both.example": [[PUBLIC_IP, "127.0.0.1"]],
  "both-turned.example": [["127.0.0.1", PUBLIC_IP]],
  "down-and-inside.example": [[DOWN_IP, "127.0.0.1"]],
  "many.example": [[DOWN_IP, "10.0.0.1", "169.254.169.254", "127.0.0.1"]],
};

/** Domains whose mail would go inside: MX, address or policy host. */
export const INSIDE_DOMAINS: readonly string[] = [
  "mx-loopback.example",
  "mx-metadata.example",
  "mx-mapped.example",
  "mx-localhost.example",
  "mx-address.example",
  "mx-any.example",
  "implicit.example",
  "policy.example",
];

/** Fills the zone. Names of `REBOUND` have a time to live of 0 and change from lookup to lookup. */
export function fillZone(dns: TestDns): void {
  dns.add({ name: PUBLIC_HOST, type: "A", data: PUBLIC_IP });
  for (const [name, records] of Object.entries(INSIDE_NAMES))
    dns.add(...records.map((record) => ({ name, ...record })));
  const mx = (domain: string, exchange: string) =>
    dns.add({ name: domain, type: "MX", data: { preference: 10, exchange } });
  mx("mx-loopback.example", "loopback.example");
  mx("mx-metadata.example", "metadata.example");
  mx("mx-mapped.example", "mapped.example");
  mx("mx-localhost.example", "localhost");
  mx("mx-address.example", "127.0.0.1");
  mx("mx-any.example", "any.example");
  dns.add({ name: "implicit.example", type: "A", data: "10.0.0.1" });
  mx("policy.example", PUBLIC_HOST);
  dns.add({ name: "_mta-sts.policy.example", type: "TXT", data: "v=STSv1; id=1" });
  dns.add({ name: "mta-sts.policy.example", type: "A", data: "169.254.169.254" });
  dns.forge(rebinding());
}

function rebinding() {
  const looks = new Map<string, number>();
  return (answer: Packet, query: Buffer): Buffer[] => {
    const question = decode(query).questions?.[0];
    const turns = question?.type === "A" ? REBOUND[question.name.toLowerCase()] : undefined;
    if (question === undefined || turns === undefined) return [encode(answer)];
    const look = looks.get(question.name) ?? 0;
    looks.set(question.name, look + 1);
    const addresses = turns[Math.min(look, turns.length - 1)] ?? [];
    const answers = addresses.map((data) => ({ name: question.name, type: "A" as const, ttl: 0, data }));
    return [encode({ ...answer, flags: (answer.flags ?? 0) & ~0xf, answers, authorities: [] })];
  };
}
