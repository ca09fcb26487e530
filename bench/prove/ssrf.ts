/**
 * Proves that no URL, name or mail domain of a customer leads the service into its own network: `bun
 * bench/prove/ssrf.ts [--control]`. Runs in a network namespace in which every address is this machine's, with a trap
 * on all of them. Compares with a service whose guard is off.
 */
import { writeFileSync } from "node:fs";
import { Resolver } from "node:dns/promises";
import { join } from "node:path";
import { makeCa, makeCert } from "../../test/support/tls.ts";
import { benchFolder } from "../support/folder.ts";
import { printMarkdown } from "../support/inbound-table.ts";
import { DOWN_IP, fillZone, INSIDE_DOMAINS, PUBLIC_IP, REBOUND } from "./support/inside-dns.ts";
import { type Field, push, type Tried, tryMail, tryPlanted, tryUrl } from "./support/inside-urls.ts";
import { endWithin } from "./support/limit.ts";
import { enterNamespace, makeUnreachable } from "./support/namespace.ts";
import { expectOk, startGround } from "./support/service.ts";
import { INSIDE_NAMES, PUBLIC_HOST, SPELLINGS } from "./support/spellings.ts";
import { allOf, atLeast, conclude, isControl, none } from "./support/table.ts";
import { setTrap } from "./support/trap.ts";

const LIMIT_MS = 240_000;
const HTTPS = 443;
const PORTS = [HTTPS, 80, 22, 25, 6379, 8443];
const MIN_SPELLINGS = 60;
/** Number of URLs that an unguarded service must follow into the trap; with fewer the comparison proves nothing. */
const MIN_UNGUARDED = 60;
const REDIRECTS = [301, 302, 303, 307, 308];
const LOCATIONS = [
  "https://169.254.169.254/latest/meta-data/",
  "https://127.0.0.1/",
  "http://127.0.0.1:6379/",
  "//10.0.0.1/",
  "https://[::1]:8443/",
  "https://loopback.example/",
];
/** The guard as it is by default, and turned off. */
const OFF = { ALLOW_PRIVATE_WEBHOOKS: "1", ALLOW_PRIVATE_MX: "1" };
const ON = { ALLOW_PRIVATE_WEBHOOKS: "0", ALLOW_PRIVATE_MX: "0" };

await enterNamespace();
endWithin(LIMIT_MS);
await makeUnreachable(DOWN_IP);

const authority = await makeCa();
const trap = setTrap({
  ports: PORTS,
  tls: await makeCert([PUBLIC_HOST, ...Object.keys(REBOUND)], authority),
  endpoint: PUBLIC_IP,
  answer: redirecting,
});
const trusted = join(benchFolder(), "authority.pem");
writeFileSync(trusted, authority.cert);

/** `/to/STATUS/N` redirects to the Nth location. Every other request is accepted. */
function redirecting(path: string): string {
  const [, status, location] = /^\/to\/(\d+)\/(\d+)$/.exec(path) ?? [];
  const head =
    status === undefined
      ? "HTTP/1.1 200 OK"
      : `HTTP/1.1 ${status} Elsewhere\r\nLocation: ${LOCATIONS[Number(location)]}`;
  return `${head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
}

/** All tries of one kind with the guard on, and the number that reached the trap with the guard off. */
interface Row {
  kind: string;
  on: Tried[];
  off: number;
}

async function inTurn<Item>(
  items: readonly Item[],
  attempt: (item: Item) => Promise<Tried>,
): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (const item of items) tried.push(await attempt(item));
  return tried;
}

async function open(guard: Record<string, string>): Promise<Field> {
  const ground = await startGround({
    hook: false,
    env: {
      ...guard,
      SMTP_OUT_PORT: "25",
      NODE_EXTRA_CA_CERTS: trusted,
      WEBHOOK_RETRY_SECONDS: "0",
      WEBHOOK_TIMEOUT_SECONDS: "5",
      DELIVERY_RETRY_SECONDS: "3600",
    },
  });
  fillZone(ground.dns);
  return { ground, trap };
}

/** Makes two attempts at a webhook whose name has moved between them, and a third at its address by then. */
async function tryRebound(field: Field, name: string): Promise<Tried> {
  const { service } = field.ground;
  const url = `https://${name}/`;
  const { id } = await expectOk(service, "POST", "/v1/webhooks", { url, eventTypes: ["delivery"] });
  const tries = [await push(field, id), await push(field, id), await push(field, id)];
  const sum = (of: (tried: Tried) => number) => tries.reduce((total, tried) => total + of(tried), 0);
  const attempted = tries.every((tried) => tried.attempted);
  return {
    refused: false,
    attempted,
    caught: sum((tried) => tried.caught),
    answered: sum((tried) => tried.answered),
  };
}

/** Makes the mistake that DNS rebinding needs: looks a name up to check it, and again to connect. */
async function lookTwice(field: Field, name: string): Promise<Tried> {
  const resolver = new Resolver();
  resolver.setServers([field.ground.dns.address]);
  await resolver.resolve4(name);
  const before = trap.caught.length;
  for (const hostname of await resolver.resolve4(name))
    await Bun.connect({ hostname, port: HTTPS, socket: { data() {} } }).catch(() => null);
  await Bun.sleep(20);
  return { refused: false, attempted: true, caught: trap.caught.length - before, answered: 0 };
}

const paths = REDIRECTS.flatMap((status) => LOCATIONS.map((_, at) => `/to/${status}/${at}`));
const names = Object.keys(INSIDE_NAMES).map((name) => `https://${name}/`);
const guarded = await open(isControl() ? OFF : ON);
const rows: Row[] = [];
const planted: Tried[] = [];
for (const [kind, urls] of Object.entries(SPELLINGS)) {
  rows.push({ kind: `URL, ${kind}`, on: await inTurn(urls, (url) => tryUrl(guarded, url)), off: 0 });
  planted.push(...(await inTurn(urls, (url) => tryPlanted(guarded, url))));
}
rows.push({ kind: "URL written into the database, all of these", on: planted, off: 0 });
rows.push({ kind: "name that leads inside", on: await inTurn(names, (url) => tryUrl(guarded, url)), off: 0 });
const rebound = await inTurn(Object.keys(REBOUND), (name) => tryRebound(guarded, name));
rows.push({ kind: "name that leads inside at times", on: rebound, off: 0 });
const redirected = await inTurn(paths, (path) => tryUrl(guarded, `https://${PUBLIC_HOST}${path}`));
rows.push({ kind: "redirect inside", on: redirected, off: 0 });
const mailed = await inTurn(INSIDE_DOMAINS, (domain) => tryMail(guarded, `a@${domain}`));
rows.push({ kind: "mail domain that leads inside", on: mailed, off: 0 });
const literals = ["a@[127.0.0.1]", "a@[IPv6:::1]", "a@127.0.0.1", "a@localhost", "a@0x7f.1"];
const literal = await inTurn(literals, (to) => tryMail(guarded, to));
rows.push({ kind: "mail to an address in brackets and the like", on: literal, off: 0 });
const honest = await tryUrl(guarded, `https://${PUBLIC_HOST}/`);
await guarded.ground.stop();

const unguarded = await open(OFF);
const reached = (tries: readonly Tried[]): number => tries.filter(({ caught }) => caught > 0).length;
for (const [at, urls] of Object.values(SPELLINGS).entries()) {
  const row = rows[at];
  if (row !== undefined) row.off = reached(await inTurn(urls, (url) => tryUrl(unguarded, url)));
}
const offOf = async (kind: string, tries: Promise<Tried[]>): Promise<void> => {
  const row = rows.find((one) => one.kind === kind);
  if (row !== undefined) row.off = reached(await tries);
};
const everyUrl = Object.values(SPELLINGS).flat();
await offOf(
  "URL written into the database, all of these",
  inTurn(everyUrl, (url) => tryPlanted(unguarded, url)),
);
await offOf(
  "name that leads inside",
  inTurn(names, (url) => tryUrl(unguarded, url)),
);
await offOf(
  "name that leads inside at times",
  inTurn(Object.keys(REBOUND), (name) => lookTwice(unguarded, name)),
);
await offOf(
  "mail domain that leads inside",
  inTurn(INSIDE_DOMAINS, (domain) => tryMail(unguarded, `a@${domain}`)),
);
await offOf(
  "redirect inside",
  inTurn(paths, (path) => followed(path)),
);
await unguarded.ground.stop();
trap.stop();

/** An ordinary client, which follows redirects. */
async function followed(path: string): Promise<Tried> {
  const before = trap.caught.length;
  const tls = { rejectUnauthorized: false };
  await fetch(`https://${PUBLIC_IP}${path}`, { method: "POST", body: "{}", tls }).catch(() => null);
  return { refused: false, attempted: true, caught: trap.caught.length - before, answered: 0 };
}

const count = (tries: readonly Tried[], of: (tried: Tried) => boolean): number => tries.filter(of).length;
printMarkdown(
  [
    "",
    "tried",
    "refused when saved",
    "attempted",
    "answered by the public endpoint",
    "reached the trap",
    "with the guard off",
  ],
  rows.map(({ kind, on, off }) => [
    kind,
    String(on.length),
    String(count(on, ({ refused }) => refused)),
    String(count(on, ({ attempted }) => attempted)),
    String(count(on, ({ answered }) => answered > 0)),
    String(reached(on)),
    String(off),
  ]),
);
console.log("");
const urls = rows.filter(({ kind }) => kind.startsWith("URL, "));
const all = rows.flatMap(({ on }) => on);
conclude("ssrf", [
  none("tries that reached the trap", reached(all)),
  atLeast("spellings of URLs", new Set(everyUrl).size, MIN_SPELLINGS),
  allOf(
    "tries refused, or attempted and recorded",
    count(all, (one) => one.refused || one.attempted),
    all.length,
  ),
  allOf(
    "redirects seen and not followed",
    count(redirected, ({ answered }) => answered === 1),
    paths.length,
  ),
  allOf("the public endpoint reached where it should be", honest.answered, 1),
  atLeast(
    "URLs that reach the trap with the guard off",
    urls.reduce((sum, { off }) => sum + off, 0),
    MIN_UNGUARDED,
  ),
]);
