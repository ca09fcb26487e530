import { invalid } from "../errors.ts";
import { DAY_MS } from "../time/units.ts";

/** The folders of threads. Each thread is in one. */
export const FOLDERS = ["inbox", "spam", "trash", "snoozed"] as const;
export type Folder = (typeof FOLDERS)[number];

/** The assignee by which a list of threads asks for those that nobody has. */
export const UNASSIGNED = "none";
/** Maximum number of labels of a thread. */
export const MAX_LABELS = 20;
export const MAX_LABEL_CHARS = 50;
/** Time for which threads stay in spam and trash before they are deleted, milliseconds. */
export const DELETED_AFTER_MS = 30 * DAY_MS;

/** Maximum time for which a thread can be snoozed, milliseconds. */
export const MAX_SNOOZE_MS = 366 * DAY_MS;

/** Returns the time at which a thread leaves a folder that it is put into; null: it stays. @param now milliseconds */
export function folderEnd(folder: Exclude<Folder, "snoozed">, now: number): number | null {
  return folder === "inbox" ? null : now + DELETED_AFTER_MS;
}

/** @throws AppError 422 if a label is given twice */
export function requireDistinct(param: string, labels: readonly string[] = []): void {
  if (new Set(labels).size < labels.length) throw invalid(param, "must not have a label twice.");
}
