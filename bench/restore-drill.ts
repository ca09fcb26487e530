/**
 * Shows how long a backup and its restore take: `bun bench/restore-drill.ts [--messages=N] [--json=FILE]`. Each step is a
 * program as an operator calls it; the last one is a start until `/readyz`.
 */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../src/clock.ts";
import { loadConfig } from "../src/config.ts";
import { openRemoteBackups } from "../src/wiring/store/remote-backups.ts";
import { S3_BUCKET, S3_KEYS, startS3 } from "../test/support/s3-server.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { storeMany } from "./support/many-messages.ts";
import { numberOption } from "./support/options.ts";

const MAIN = join(import.meta.dir, "../src/main.ts");
const MB = 1_000_000;
const figures: Record<string, Record<string, number>> = {};

async function timed(name: string, act: () => Promise<unknown>, file?: string): Promise<void> {
  const begun = performance.now();
  const at = new Date().toISOString();
  await act();
  const seconds = Math.round((performance.now() - begun) / 100) / 10;
  const mb = file === undefined ? 0 : Math.round(statSync(file).size / MB);
  console.log(`| ${at} | ${name} | ${seconds} | ${mb === 0 ? "" : mb} |`);
  figures[name] = { seconds, ...(mb === 0 ? {} : { mb }) };
}

async function run(args: readonly string[], env: Record<string, string>): Promise<void> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    env: { PATH: Bun.env.PATH ?? "", ...env },
    stdout: "ignore",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Error(`postrider ${args.join(" ")} failed`);
}

async function startUntilReady(env: Record<string, string>): Promise<void> {
  const child = Bun.spawn([process.execPath, MAIN, "serve"], {
    env: {
      PATH: Bun.env.PATH ?? "",
      DELIVERY: "capture",
      HOST: "127.0.0.1",
      PORT: "3987",
      SMTP_PORT: "3988",
      ...env,
    },
    stdout: "ignore",
    stderr: "inherit",
  });
  const isReady = () =>
    fetch("http://127.0.0.1:3987/readyz").then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) await Bun.sleep(20);
  child.kill("SIGKILL");
  await child.exited;
}

const folder = benchFolder();
const [here, there] = ["here", "there"].map((name) => join(folder, name)) as [string, string];
for (const made of [here, there]) mkdirSync(made);
const database = join(here, "postrider.db");
await storeMany(database, numberOption("messages", 200_000));
const key = { MASTER_KEY: "a master key of the bench".replaceAll(" ", "-").padEnd(40, "x") };
const env = { ...key, DATA_DIR: here };
const [plain, sealed] = [join(folder, "plain.db"), join(folder, "sealed.age")];
console.log("| began | step | seconds | MB |\n|---|---|---|---|");
await timed("the database", async () => undefined, database);
await timed("backup", () => run(["backup", plain], env), plain);
await timed("backup --encrypt, opened once", () => run(["backup", sealed, "--encrypt"], env), sealed);
const s3 = await startS3();
const { accessKeyId, secretAccessKey, region } = S3_KEYS;
const remote = openRemoteBackups(
  loadConfig({
    S3_ENDPOINT: s3.endpoint,
    S3_REGION: region,
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
  }),
  systemClock,
  `s3://${S3_BUCKET}`,
);
await timed("to an object store on this machine, read back", () => remote.put(sealed, "sealed.age"));
await s3.stop();
await timed("restore of the encrypted one", () => run(["restore", sealed], { ...key, DATA_DIR: there }));
await timed("start until ready", () => startUntilReady({ ...key, DATA_DIR: there }));
handOver(figures);
