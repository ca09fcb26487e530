/** Is loaded before the service. Makes a failed commit look like a good one. */
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
