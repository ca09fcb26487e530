/**
 * Measures the dashboard's pages in Chromium, and what ten open dashboards cost: `bun bench/dashboards.ts [--only=NAME]
 * [--rounds=N] [--visits=N] [--many=N] [--keep=FOLDER] [--json=FILE] [--apart]`. NAME: first, list, events, accept, inbound.
 * With `--apart`, accept and inbound run on core 0 and Chromium on core 1, because people open dashboards on their own machines.
 */
import { join } from "node:path";
import { launchChromium } from "../test/support/browser.ts";
import { type Child, startChild } from "./support/children.ts";
import { useCores } from "./support/cores.ts";
import { openDashboards } from "./support/open-dashboards.ts";
import {
  type Figures,
  manyMessages,
  measureEvents,
  measureFirst,
  measureList,
} from "./support/dashboard-pages.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import type { LoadOptions, LoadResult } from "./support/http-load.ts";
import { openSender, send } from "./support/inbound-mail.ts";
import { chosen, domains, flag, keptFolder, numberOption, rounds } from "./support/options.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import { median, PROCESSOR } from "./support/table.ts";

const SUPPORT = join(import.meta.dir, "support");
const VISITS = numberOption("visits", 15);
const MANY = numberOption("many", 1_000_000);
const DASHBOARDS = 10;
/** Messages of the small project. */
const FEW = 200;
const CONNECTIONS = 50;
const WARM_MS = 6000;
const MEASURE_MS = 12_000;
const SESSIONS = 20;
const MAIL_OCTETS = 4096;
const WARM_MAILS = 8000;
const MAILS = 24_000;

/** Cores of the service with its load, and of Chromium; null: all for both. */
const CORES = flag("apart") ? { service: "0", chromium: "1" } : null;

const home = benchFolder();
const prepared = await prepareData(home);

async function first(): Promise<Figures> {
  const { folder, key } = await manyMessages(home, FEW);
  return withPages(folder, (browser, service) => measureFirst(browser, service, key, VISITS));
}

async function list(): Promise<Figures> {
  const { folder, key } = await manyMessages(keptFolder() ?? home, MANY);
  return withPages(folder, (browser, service) => measureList(browser, service, key, VISITS));
}

async function events(): Promise<Figures> {
  return withPages(prepared.folder, (browser, service) =>
    measureEvents(browser, service, prepared.key, VISITS),
  );
}

async function withPages(
  folder: string,
  measure: (
    browser: Awaited<ReturnType<typeof launchChromium>>,
    service: Awaited<ReturnType<typeof startService>>,
  ) => Promise<Figures>,
): Promise<Figures> {
  const service = await startService(folder, { ROLES: "api,worker" });
  const browser = await launchChromium();
  const figures = await measure(browser, service);
  await browser.close();
  await service.child.end();
  return figures;
}

/** Puts the service under a load. Resolves with its rate, and the requests or messages that it took. */
type Load = (
  child: Child,
  ports: { httpPort: number; smtpPort: number },
) => Promise<[rate: number, count: number]>;

/** Measures a load in turns without and with open dashboards. */
async function inTurns(
  name: string,
  unit: string,
  env: Record<string, string>,
  load: Load,
): Promise<Figures> {
  const taken: Record<string, number[]>[] = [{}, {}];
  if (CORES !== null) useCores(CORES.service);
  for (let round = 0; round < rounds(); round++)
    for (const [at, open] of [false, true].entries()) {
      const { child, url, ...ports } = await startService(copyOf(prepared.folder), env);
      const close = open
        ? await openDashboards(url, prepared.key, DASHBOARDS, CORES?.chromium ?? null)
        : null;
      const before = child.processor();
      const [rate, count] = await load(child, ports);
      const processor = (child.processor() - before) / count;
      await close?.();
      for (const [column, value] of Object.entries({ [unit]: rate, [PROCESSOR]: processor }))
        (taken[at] ?? {})[column] = [...(taken[at]?.[column] ?? []), value];
      await child.end();
    }
  return Object.fromEntries(
    [name, `${name}, ${DASHBOARDS} dashboards open`].map((row, at) => [
      row,
      Object.fromEntries(Object.entries(taken[at] ?? {}).map(([column, values]) => [column, median(values)])),
    ]),
  );
}

async function accept(): Promise<Figures> {
  return inTurns("accept", "req/s", { ROLES: "api" }, async (_, { httpPort }) => {
    const options: LoadOptions = {
      port: httpPort,
      key: prepared.key,
      from: `news@${DOMAIN}`,
      connections: CONNECTIONS,
      domains: domains(),
      warmMs: WARM_MS,
      measureMs: MEASURE_MS,
    };
    const command = [process.execPath, join(SUPPORT, "http-load.ts"), JSON.stringify(options)];
    const child = await startChild(command, { log: join(home, `load-${Bun.randomUUIDv7()}`) });
    const { perSecond, answered } = JSON.parse(await child.finished()) as LoadResult;
    return [perSecond, answered];
  });
}

async function inbound(): Promise<Figures> {
  const sender = await openSender(home, prepared.inbox, false);
  const mail = await sender.mail("text", MAIL_OCTETS);
  const env = { ROLES: "api,smtp", DNS_SERVERS: sender.dns.address };
  const figures = await inTurns("inbound", "msg/s", env, async (_, { smtpPort }) => {
    const to = { port: smtpPort, sessions: SESSIONS, kept: true, mail };
    await send(home, { ...to, mails: WARM_MAILS });
    return [MAILS / (await send(home, { ...to, mails: MAILS })), WARM_MAILS + MAILS];
  });
  sender.dns.stop();
  return figures;
}

const parts = { first, list, events, accept, inbound };
const figures: Figures = {};
for (const [, measure] of chosen(Object.entries(parts))) Object.assign(figures, await measure());
for (const [row, columns] of Object.entries(figures)) {
  const shown = Object.entries(columns).map(
    ([column, value]) => `${column} ${value.toFixed(value < 10 ? 1 : 0)}`,
  );
  console.log(`${row}: ${shown.join(", ")}`);
}
handOver(figures);
