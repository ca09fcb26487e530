/** Loaded before the service, it has a commit that fails pass for one that succeeded. */
import Database from "libsql";

const { exec } = Database.prototype;
Database.prototype.exec = function (this: Database.Database, sql: string) {
  if (sql !== "COMMIT") return exec.call(this, sql);
  try {
    return exec.call(this, sql);
  } catch {
    return this;
  }
};
