import type { Quotas } from "../../core/quotas.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import type { DoneRow, WaitingRow } from "../../store/imports/parts.ts";
import type { Project } from "../../store/projects/projects.ts";

/** Dependencies of saving parts. */
export interface PartDeps {
  db: Db;
  clock: Clock;
  quotas: Quotas;
}

/** Rows to save. */
export interface Part {
  senderId: string;
  project: Pick<Project, "plan">;
  now: number;
  rows: readonly WaitingRow[];
  /** Returns the statements that store the results in the same write. */
  settle: (rows: readonly DoneRow[]) => Statement[];
  /** Set if nothing is written: the number of rows that would have been created before. */
  preview?: number;
}
