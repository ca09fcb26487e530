import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import { openRemoteBackups, PART_OCTETS } from "../../src/wiring/store/remote-backups.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { serviceProcess } from "../support/process.ts";
import { S3_BUCKET, S3_KEYS, type S3Server, startS3 } from "../support/s3-server.ts";
import { postrider } from "./command-program.ts";

/** Milliseconds. */
setDefaultTimeout(90_000);
const PLACE = `s3://${S3_BUCKET}/far`;

let s3: S3Server;
beforeAll(async () => {
  s3 = await startS3();
});
afterAll(async () => {
  await s3.stop();
});

const settings = () => ({
  S3_ENDPOINT: s3.endpoint,
  S3_REGION: S3_KEYS.region,
  S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
  S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
  BACKUP_TO: PLACE,
});
const remote = (place = PLACE) => openRemoteBackups(loadConfig(settings()), systemClock, place);
const names = (place = PLACE) =>
  remote(place)
    .list()
    .then((all) => all.map(({ name }) => name));

/** Makes a file of random octets. */
function fileOf(octets: number): string {
  const path = join(newFolder("backup"), "one.age");
  writeFileSync(path, new Uint8Array(octets).fill(octets % 251));
  return path;
}

test.each([0, 1, PART_OCTETS, PART_OCTETS + 1])(
  "a backup of %d octets comes back as it was",
  async (octets) => {
    const place = `s3://${S3_BUCKET}/size-${octets}`;
    const path = fileOf(octets);
    await remote(place).put(path, "one.age");
    const back = join(newFolder("backup"), "back");
    await remote(place).fetch("one.age", back);
    expect(readFileSync(back).equals(readFileSync(path))).toBe(true);
    const stored = [...s3.objects].filter(([name]) => name.startsWith(`size-${octets}/backups/one.age/`));
    expect(stored.length).toBe(Math.ceil(octets / PART_OCTETS));
    expect(stored.every(([, bytes]) => bytes.length <= PART_OCTETS)).toBe(true);
  },
);

test("a backup that was interrupted is not listed, and its parts go with the next one", async () => {
  const place = `s3://${S3_BUCKET}/cut`;
  s3.mood({ kind: "refuse", status: 500, code: "InternalError" }, "GET");
  await expect(remote(place).put(fileOf(9), "a.age")).rejects.toThrow("500");
  s3.mood({ kind: "serve" }, "GET");
  const { objects } = s3;
  await remote(place).put(fileOf(9), "b.age");
  // The octets of one are lost on the way.
  const interrupted = remote(place).put(fileOf(PART_OCTETS + 5), "c.age");
  s3.mood({ kind: "cut" }, "PUT");
  await expect(interrupted).rejects.toThrow();
  s3.mood({ kind: "serve" }, "PUT");
  expect(await names(place)).toEqual(["b.age"]);
  await remote(place).put(fileOf(7), "d.age");
  await remote(place).keep(1);
  expect(await names(place)).toEqual(["d.age"]);
  expect([...objects.keys()].filter((name) => name.startsWith("cut/")).toSorted()).toEqual([
    "cut/backups/d.age/0",
    "cut/backups/index.json",
  ]);
});

test("a backup with a changed part is not restored", async () => {
  const place = `s3://${S3_BUCKET}/changed`;
  await remote(place).put(fileOf(100), "one.age");
  s3.objects.set("changed/backups/one.age/0", new Uint8Array(100));
  await expect(remote(place).fetch("one.age", join(newFolder("backup"), "back"))).rejects.toThrow("damaged");
});

test("with BACKUP_TO=s3://… a worker keeps its backups there, and restore lists them and takes one", async () => {
  const data = newFolder("remote");
  const own = { DELIVERY: "capture", DATA_DIR: data, BACKUP_EVERY: "1d", BACKUP_KEEP: "1", ...settings() };
  await remote().put(fileOf(5), "postrider-2026-01-01T00-00-00Z.age");
  const process = serviceProcess(own);
  try {
    await process.start();
    await until(() =>
      process.output().stdout.concat(process.output().stderr).includes("backed up the database"),
    );
    await until(async () => (await names()).length === 1);
    expect(readdirSync(join(data, "backups"))).toEqual([]);
    const doctor = await postrider(["doctor", "--json"], own);
    expect(doctor.stdout).toContain("The last good backup is 0.0 hours old.");
  } finally {
    await process.terminate();
  }
  const [listed] = (await postrider(["restore", PLACE, "--json"], settings())).json();
  const name = String(listed?.name);
  expect(name).toMatch(/^s3:\/\/mail\/far\/postrider-20\d\d-.*Z\.age$/);
  const masterKey = readFileSync(join(data, "master.key"), "utf8").trim();
  const env = () => ({ ...settings(), DATA_DIR: newFolder("restored"), MASTER_KEY: masterKey });
  const restored = await postrider(["restore", name, "--json"], env());
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  const missing = await postrider(["restore", `${PLACE}/none.age`], env());
  expect([missing.code, missing.stderr]).toEqual([
    69,
    expect.stringContaining("there is no backup none.age"),
  ]);
});
