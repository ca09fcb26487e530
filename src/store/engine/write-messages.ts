import type { StatementParcel, WrittenParcel } from "./parcel.ts";

/**
 * What the thread that writes is told: first the file, then transactions, each in one or more pieces. `abandon`: of the one
 * under way no more pieces come.
 */
export type ToWriter =
  | { kind: "open"; path: string }
  | { kind: "statements"; parcel: StatementParcel; first: boolean; last: boolean }
  | { kind: "abandon" | "close" };

/** What it says. Of a transaction it speaks once, at its end. */
export type FromWriter =
  | { kind: "opened" }
  | { kind: "written"; parcel: WrittenParcel }
  | { kind: "refused"; message: string; code: string; statement: number | null }
  | { kind: "closed" };
