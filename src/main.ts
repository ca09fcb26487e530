import { version } from "../package.json";
import { startApp } from "./app.ts";
import { keepAlive, systemClock } from "./clock.ts";
import { type Config, ConfigError, loadConfig } from "./config.ts";
import { zoneFile } from "./flows/zone.ts";
import { configureLog, log } from "./log.ts";
import { openDb } from "./store/client.ts";
import { migrate, migrationStates } from "./store/migrate.ts";
import { bannerText } from "./wiring/banner.ts";

/** sysexits.h: the command was used wrongly; something of ours failed; the configuration is wrong. */
const EX_USAGE = 64;
const EX_SOFTWARE = 70;
const EX_CONFIG = 78;

const HELP = `postrider: sends and receives email over a REST API

usage: postrider [command]

  serve            start the service (default)
  migrate          bring the database up to date
  migrate status   show which schema steps have been applied
  dns zone         print the zone of SERVICE_DOMAIN as a zone file
  --help           show this text
  --version        show the version

Settings are environment variables; the README lists them all.
exit codes: 0 done, ${EX_USAGE} wrong usage, ${EX_SOFTWARE} failed, ${EX_CONFIG} wrong settings`;

const COMMANDS: Readonly<Record<string, (config: Config) => Promise<void>>> = {
  serve,
  migrate: migrateNow,
  "migrate status": migrateStatus,
  "dns zone": printZone,
};

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const name = args.join(" ") || "serve";
  if (name === "--help" || name === "help") return console.log(HELP);
  if (name === "--version") return console.log(version);
  const command = COMMANDS[name];
  if (command === undefined) fail(EX_USAGE, `no such command: ${name}\n\n${HELP}`);
  try {
    const config = loadConfig(process.env, process.stderr.isTTY === true);
    await configureLog(config.logLevel, config.logFormat);
    await command(config);
  } catch (error) {
    if (error instanceof ConfigError) fail(EX_CONFIG, error.message);
    fail(EX_SOFTWARE, error instanceof Error ? error.message : String(error));
  }
}

function fail(code: number, message: string): never {
  console.error(`postrider: ${message}`);
  process.exit(code);
}

async function serve(config: Config): Promise<void> {
  // A worker without Redis holds no socket of its own.
  keepAlive();
  const app = await startApp(config, systemClock);
  console.log(bannerText(config, app));
  const stop = (signal: string): void => {
    log("app").info("stopping", { signal });
    app.stop().then(
      () => process.exit(0),
      (error: unknown) => fail(EX_SOFTWARE, String(error)),
    );
  };
  process.on("SIGHUP", () => {
    app.reload().then(
      (read) =>
        log("app").info(read ? "certificate read anew" : "no certificate is configured, nothing to read"),
      (error: unknown) => log("app").error("the old certificate stays", { error: String(error) }),
    );
  });
  process.on("SIGTERM", () => stop("SIGTERM"));
  process.on("SIGINT", () => stop("SIGINT"));
}

function openStore(config: Config) {
  const { databaseUrl: url, databaseAuthToken: authToken, databaseSyncUrl: syncUrl } = config;
  return openDb(systemClock, { url, authToken, syncUrl });
}

async function migrateNow(config: Config): Promise<void> {
  const db = await openStore(config);
  const applied = await migrate(db, systemClock.now());
  await db.close();
  console.log(applied.length === 0 ? "up to date" : `applied: ${applied.join(", ")}`);
}

async function printZone(config: Config): Promise<void> {
  if (config.publicIps.length === 0)
    throw new ConfigError(["PUBLIC_IPS is not set: the zone's hosts have no addresses"]);
  const db = await openStore(config);
  const waiting = (await migrationStates(db)).some(({ appliedAt }) => appliedAt === null);
  if (waiting) throw new Error("the database is not up to date: start the service, or run postrider migrate");
  for await (const lines of zoneFile({ db, clock: systemClock }, config)) console.log(lines);
  await db.close();
}

async function migrateStatus(config: Config): Promise<void> {
  const db = await openStore(config);
  for (const { version: step, name, appliedAt } of await migrationStates(db))
    console.log(`${step} ${name} ${appliedAt === null ? "pending" : new Date(appliedAt).toISOString()}`);
  await db.close();
}
