/**
 * Is loaded before the service. Turns `synchronous=FULL` off after the service has checked it, so that commits do not
 * wait for the disk.
 */
import Database from "libsql";

const { exec } = Database.prototype;
Database.prototype.exec = function (this: Database.Database, sql: string) {
  const done = exec.call(this, sql);
  // The last pragma that the service sets and checks.
  if (sql.includes("journal_size_limit")) exec.call(this, "PRAGMA synchronous = OFF");
  return done;
};
