import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { Config } from "../../config.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import { pauseWhenDone } from "../../flows/sweep/backoff.ts";
import { log } from "../../log.ts";
import type { Store } from "../../store/engine/client.ts";
import { claimFact, readFact, recordFact } from "../../store/installation/facts.ts";
import { FORM } from "../process/form.ts";
import { isRemote, openRemoteBackups } from "./remote-backups.ts";
import type { Chore } from "../process/loop.ts";

/** Names of the backups that the service makes, so that it deletes no other file. */
const NAME = /^postrider-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.age$/;
/** Pause between two looks at whether a backup is due, milliseconds. */
const LOOK_MS = 30_000;
/** Longest pause after a backup that failed, milliseconds. */
const RETRY_MS = HOUR_MS;

/** Returns the chore that backs up the database; none if BACKUP_EVERY is off. */
export function backupChores(config: Config, { db, clock }: Store): readonly Chore[] {
  const { backupEvery: every, backupTo } = config;
  if (every === 0) return [];
  const remote = isRemote(backupTo ?? "") ? openRemoteBackups(config, clock, backupTo ?? "") : null;
  const turn = async (now: number): Promise<boolean> => {
    const begun = await readFact(db, "backup_begun");
    if (begun !== null && now - Number(begun) < every) return true;
    // Of several processes one makes it.
    if (!(await claimFact(db, "backup_begun", begun, String(now)))) return true;
    try {
      const file = await makeBackup(config, now);
      if (remote !== null)
        await remote.put(file, basename(file)).finally(() => rmSync(file, { force: true }));
      await db.write([recordFact("backup", String(now))]);
      log("app").info("backed up the database", { file });
      if (remote === null) for (const old of oldest(config)) rmSync(old, { force: true });
      else await remote.keep(config.backupKeep);
      return true;
    } catch (error) {
      const retryAt = now - every + Math.min(every, RETRY_MS);
      await db.write([recordFact("backup_begun", String(retryAt))]);
      throw error;
    }
  };
  return [{ name: "backups", turn: pauseWhenDone(clock, LOOK_MS, turn) }];
}

function folderOf({ backupTo, dataDir }: Config): string {
  // A file waits here for its upload.
  return backupTo === null || isRemote(backupTo) ? join(dataDir, "backups") : backupTo;
}

/** Lists those beyond the ones to keep. */
function oldest(config: Config): string[] {
  const folder = folderOf(config);
  const names = readdirSync(folder).filter((name) => NAME.test(name));
  return names
    .sort()
    .slice(0, -config.backupKeep)
    .map((name) => join(folder, name));
}

/** Runs `postrider backup` in another process, because copying and encrypting take the processor for seconds. */
async function makeBackup(config: Config, now: number): Promise<string> {
  const folder = folderOf(config);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const time = new Date(now).toISOString().replace(/:/g, "-").replace(/\.\d+/, "");
  const file = join(folder, `postrider-${time}.age`);
  // One that was interrupted must not stop all that follow.
  for (const name of readdirSync(folder)) if (/\.age\.part(?:\.age)?$/.test(name)) rmSync(join(folder, name));
  const child = Bun.spawn([...FORM.itself, "backup", file, "--encrypt"], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const [code, said] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`no backup was made: ${said.trim().replace(/^postrider: /, "")}`);
  return file;
}
