import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Db, type DbOptions, openDb } from "../../src/store/engine/client.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { type Primary, startPrimary } from "./hrana-server.ts";

/** What a database can be: a file of the process's own, a server, or a file that replicates one. */
export type EngineName = "file" | "server" | "replica";

/** A real libSQL database in a folder of its own, with the schema in it. */
export interface TestDatabase {
  db: Db;
  folder: string;
  url: string;
  /** Where its writes are carried out: the file, or the server. */
  writesAt: string;
  /** Opens it again after `db` was closed. */
  reopen(): Promise<Db>;
  /** Opens it as another process would. The caller closes it. */
  another(): Promise<Db>;
  /** Resolves when what others have written is read here: a replica hears of it in a second, or with a write of its own. */
  caughtUp(reader?: Db): Promise<void>;
  /** Closes it and deletes the folder. */
  remove(): Promise<void>;
}

let chosen: EngineName = "file";
let primary: Promise<Primary> | null = null;
let made = 0;

/** Which engine the databases of the tests to come have. */
export function useEngine(engine: EngineName): void {
  chosen = engine;
}

/** The server that databases of tests lie on: one for all, for a process takes longer to start than a test to run. */
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
