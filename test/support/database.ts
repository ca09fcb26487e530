import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Db, type DbOptions, openDb } from "../../src/store/engine/client.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { type Primary, startPrimary } from "./hrana-server.ts";

/** The kind of database: a file of this process, a server, or a file that replicates a server. */
export type EngineName = "file" | "server" | "replica";

/** A real libSQL database in a folder of its own, with the schema in it. */
export interface TestDatabase {
  db: Db;
  folder: string;
  url: string;
  /** Where writes are carried out: the file, or the server. */
  writesAt: string;
  /** Opens it again after `db` was closed. */
  reopen(): Promise<Db>;
  /** Opens the database as another process would. The caller closes it. */
  another(): Promise<Db>;
  /**
   * Resolves when this database can read the writes of other processes. A replica learns of them within a second,
   * or with its own next write.
   */
  caughtUp(reader?: Db): Promise<void>;
  /** Closes it and deletes the folder. */
  remove(): Promise<void>;
}

let chosen: EngineName = "file";
let primary: Promise<Primary> | null = null;
let made = 0;

/** The engine of the databases that later tests open. */
export function useEngine(engine: EngineName): void {
  chosen = engine;
}

/** The server shared by all test databases, because a process takes longer to start than a test takes to run. */
function sharedPrimary(): Promise<Primary> {
  primary ??= startPrimary();
  return primary;
}

const OPTIONS: Readonly<Record<EngineName, (folder: string) => Promise<DbOptions[]>>> = {
  async file(folder) {
    const own = { url: `file:${join(folder, "postrider.db")}`, authToken: null, syncUrl: null };
    return [own, own];
  },
  async server() {
    const url = await (await sharedPrimary()).open(`database-${++made}`);
    return [
      { url, authToken: null, syncUrl: null },
      { url, authToken: null, syncUrl: null },
    ];
  },
  async replica(folder) {
    const syncUrl = await (await sharedPrimary()).open(`database-${++made}`);
    return ["postrider.db", "another.db"].map((name) => ({
      ...{ url: `file:${join(folder, name)}`, authToken: null, syncUrl },
    }));
  },
};

/** A database of the engine chosen, with the whole schema and nothing in it. */
export async function testDatabase(engine: EngineName = chosen): Promise<TestDatabase> {
  const folder = newFolder("test");
  const [options, other] = await OPTIONS[engine](folder);
  if (options === undefined || other === undefined) throw new Error(`no such engine: ${engine}`);
  const db = await openDb(systemClock, options);
  await migrate(db, 1_700_000_000_000);
  return {
    db,
    folder,
    url: options.url,
    writesAt: options.syncUrl ?? options.url,
    reopen: () => openDb(systemClock, options),
    another: () => openDb(systemClock, other),
    caughtUp: (reader = db) => reader.migrate([{ sql: "SELECT 1", args: [] }]),
    async remove() {
      await db.close();
      removeFolder(folder);
    },
  };
}
