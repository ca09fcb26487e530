import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordedAnswer } from "../support/recorded-answers.ts";

/** SHA-256 of the SQL of the released schema steps, by name. A release adds its steps; no line ever changes. */
export const RELEASED_STEPS: Readonly<Record<string, string>> = {
  initial: "9ae72e1e0432177b15707ca7d07c41f4d4344088d67fe2dd4de5590546212228",
};

/** The folder of the fixtures: for each released version its database and what its API answered, both compressed. */
export const FIXTURES = join(import.meta.dir, "../fixtures/upgrade");

/** The answers of a version's service about its database. */
export interface Snapshot {
  version: string;
  /** Time of the answers, milliseconds. */
  at: number;
  masterKey: string;
  answers: RecordedAnswer[];
  /** Rows that still want a worker, by table. */
  due: Record<string, unknown[]>;
  /** A message whose time comes an hour later, and the key that may read it. */
  scheduled: { id: string; key: string };
}

/** The tables whose rows may be due, with the order of their rows. */
export const DUE = { recipients: "message_id, ord", webhook_deliveries: "id" } as const;

/** The query for the rows of a table that are due, now or later. */
export function dueRows(table: keyof typeof DUE): string {
  return `SELECT * FROM ${table} WHERE due_at IS NOT NULL ORDER BY ${DUE[table]}`;
}

/** The versions that have a fixture. */
export function fixtureVersions(): string[] {
  return readdirSync(FIXTURES)
    .filter((name) => name.endsWith(".db.zst"))
    .map((name) => name.slice(0, -".db.zst".length));
}

export function writeFixture(snapshot: Snapshot, database: Uint8Array): void {
  const path = join(FIXTURES, snapshot.version);
  writeFileSync(`${path}.db.zst`, Bun.zstdCompressSync(database, { level: 19 }), { flag: "wx" });
  writeFileSync(`${path}.json.zst`, Bun.zstdCompressSync(JSON.stringify(snapshot), { level: 19 }), {
    flag: "wx",
  });
}

export function readFixture(version: string): { snapshot: Snapshot; database: Uint8Array } {
  const path = join(FIXTURES, version);
  const bytes = (ending: string) => Bun.zstdDecompressSync(readFileSync(`${path}${ending}`));
  return { snapshot: JSON.parse(bytes(".json.zst").toString()), database: bytes(".db.zst") };
}
