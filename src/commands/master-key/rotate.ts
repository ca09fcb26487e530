import { existsSync } from "node:fs";
import { join } from "node:path";
import { keepAlive } from "../../clock.ts";
import { SettingsError } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { WRONG_KEY } from "../../flows/records/keys.ts";
import { type MasterKey, masterKeyOf } from "../../flows/secrets/master-key.ts";
import type { Resealed } from "../../flows/secrets/reseal.ts";
import { rotateMasterKey, RotationError } from "../../flows/secrets/rotate.ts";
import { KEPT_DAYS } from "../../store/installation/secrets.ts";
import { type InUse, keysInUse, type KeySettings, problemOf } from "../../wiring/store/installation-keys.ts";
import { nextKeyFromFile, OLD_KEY_FILE, turnKeyFiles } from "../../wiring/store/master-key.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK, refused } from "../support/exit.ts";

/** Changes the master key while the service runs. */
export const masterKeyRotate = defineCommand({
  name: "master-key rotate",
  flags: {},
  about: `Changes the master key while the service runs, and seals every secret in the database again. If it is interrupted,
call it again: it goes on where it was.

Without MASTER_KEY it makes the new key itself, in DATA_DIR. With MASTER_KEY: set that to a new key, such as of
\`openssl rand -hex 32\`, and MASTER_KEY_OLD to the one before, restart the processes one by one, then call this with the
same settings. Both keys are valid until it ends. Processes report their keys every 15 seconds, so it takes about a minute.

Links and return paths of mail that was sent work for ${KEPT_DAYS} days more. After a leak \`postrider master-key forget\` ends that.`,
  example: "postrider master-key rotate",
  async run(_input, context) {
    const end = keepAlive();
    try {
      return await withDatabase(context, async (db) => {
        const { clock, config } = context;
        const inUse = await keysInUse(db, config);
        const [from, to] = keysOfRotation(inUse, config);
        const beforeEnd = () => (config.masterKey === null ? turnKeyFiles(config.dataDir) : undefined);
        const deps = { db, clock, beforeEnd };
        const done = await rotateMasterKey(deps, from, to).catch((error: unknown) => {
          throw error instanceof RotationError ? refused(error.message) : error;
        });
        tell(context, done, clock.now());
        return EX_OK;
      });
    } finally {
      end();
    }
  },
});

/** Returns the keys before and after. Those of a pending rotation, else the one in use and the first other one of the settings. */
function keysOfRotation(inUse: InUse, settings: KeySettings): [from: MasterKey, to: MasterKey] {
  const { sealing, rotation, held } = inUse;
  const problem = problemOf(inUse);
  if (sealing === null || problem !== null) throw new SettingsError(problem ?? WRONG_KEY);
  const [from, to] = (rotation ?? []).map((id) => held.find((key) => key.id === id));
  if (from !== undefined && to !== undefined) return [from, to];
  const [first] = held;
  if (first !== undefined && first.id !== sealing.id) return [sealing, first];
  if (settings.masterKey === null) {
    const old = join(settings.dataDir, OLD_KEY_FILE);
    if (existsSync(old))
      throw refused(
        `${old} holds the key before the last change: move it to where your backups are, and call this again`,
      );
    return [sealing, masterKeyOf(nextKeyFromFile(settings.dataDir))];
  }
  if (settings.masterKeyOld !== null)
    throw refused(
      "the master key was changed to MASTER_KEY already: remove MASTER_KEY_OLD from the settings",
    );
  throw refused(
    "MASTER_KEY is in use already: set it to a new key, such as of `openssl rand -hex 32`, and MASTER_KEY_OLD to this one, restart every process, and call this again",
  );
}

function tell({ config, out }: Context, tables: readonly Resealed[], now: number): void {
  const resealed = tables.reduce((sum, table) => sum + table.resealed, 0);
  const lost = tables.reduce((sum, table) => sum + table.lost, 0);
  const linksUntil = new Date(now + KEPT_DAYS * DAY_MS).toISOString();
  const parts = tables
    .filter((table) => table.resealed > 0)
    .map((table) => `${table.resealed} in ${table.table}`);
  const where = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
  const next = [
    config.masterKey === null
      ? `Move ${join(config.dataDir, OLD_KEY_FILE)}, which holds the old key, to where your backups are: those made until now open with it alone.`
      : "Remove MASTER_KEY_OLD from the settings of every process now. Keep the old key where your backups are: those made until now open with it alone.",
    "After a leak: make a backup now, delete the earlier ones and the old key, and call `postrider master-key forget`.",
    ...(lost > 0
      ? [`${lost} secrets open with neither key: \`postrider master-key reset\` lists and replaces them.`]
      : []),
  ];
  const said = `The master key was changed, and ${resealed} secrets were sealed again${where}. Links in mail that was sent work until ${linksUntil}.`;
  out.record({ resealed, lost, linksUntil, tables, next }, [said, ...next].join("\n"));
}
