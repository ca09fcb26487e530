/** Loaded before the service, it undoes `synchronous=FULL` behind the back of the check: commits are not waited for. */
import Database from "libsql";

const { exec } = Database.prototype;
Database.prototype.exec = function (this: Database.Database, sql: string) {
  const done = exec.call(this, sql);
  // The last of the pragmas that are set and looked at.
  if (sql.includes("journal_size_limit")) exec.call(this, "PRAGMA synchronous = OFF");
  return done;
};
