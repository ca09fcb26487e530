import { signal } from "@preact/signals";

/** Counts the changes that this tab has made to what is read. The API has no event for them. */
export const readChanges = signal(0);

/** Counts the changes that this tab has made to which notices are seen. */
export const seenChanges = signal(0);
