import type { Db } from "../../src/store/engine/client.ts";

/** A database that counts its reads, and fails or hangs on request. */
export function watched(db: Db): Db & { asked: number; state: "fine" | "failing" | "hanging" } {
  const own = { asked: 0, state: "fine" as "fine" | "failing" | "hanging" };
  return Object.assign(Object.create(db) as Db, own, {
    first(this: typeof own, ...args: Parameters<Db["first"]>) {
      this.asked++;
      if (this.state === "failing") return Promise.reject(new Error("SQLITE_IOERR"));
      if (this.state === "hanging") return new Promise(() => undefined);
      return db.first(...args);
    },
    all: (...args: Parameters<Db["all"]>) => db.all(...args),
  });
}
