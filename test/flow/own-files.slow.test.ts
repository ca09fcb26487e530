import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { captureService, postrider, program } from "./command-program.ts";
import { newFolder } from "../support/folder.ts";
import { startService } from "../support/service.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test("files that a start makes in a public folder are private to their owner", async () => {
  const folder = newFolder("command");
  chmodSync(folder, 0o755);
  const { service, folder: made } = captureService({ DATA_DIR: folder });
  try {
    await service.start();
    const names = readdirSync(folder).sort();
    expect(names).toEqual(["master.key", "postrider.db", "postrider.db-shm", "postrider.db-wal"]);
    expect(names.map((name) => modeOf(join(folder, name)))).toEqual(names.map(() => 0o600));
  } finally {
    await service.remove();
    for (const each of [folder, made]) rmSync(each, { recursive: true });
  }
});

test("a folder that a start makes is private to its owner, and so is its parent", async () => {
  const folder = newFolder("command");
  const around = join(folder, "var");
  const service = await startService({ DATA_DIR: join(around, "data") });
  try {
    expect([around, join(around, "data")].map(modeOf)).toEqual([0o700, 0o700]);
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true });
  }
});

test("doctor reports files that all users can read, unless their folder is private", async () => {
  const folder = newFolder("command");
  const env = { DATA_DIR: folder };
  const found = async () => {
    const line = (await postrider(["doctor"], env)).json().find(({ name }) => name === "files");
    return [line?.status, line?.fix];
  };
  await program(["migrate"], env);
  chmodSync(folder, 0o755);
  expect(await found()).toEqual(["ok", null]);
  const file = join(folder, "postrider.db");
  chmodSync(file, 0o644);
  expect(await found()).toEqual(["warn", `Run: chmod 600 ${file}`]);
  chmodSync(folder, 0o700);
  expect(await found()).toEqual(["ok", null]);
  rmSync(folder, { recursive: true });
});
