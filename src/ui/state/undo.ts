import { signal } from "@preact/signals";
import { after } from "../browser/clock.ts";

/** Time for which something can be undone, seconds. Messages are held as long. */
export const UNDO_SECONDS = 10;

/** Something that was just done and can be undone. */
export interface Undoable {
  /** What was done: `Archived`. */
  text: string;
  undo: () => Promise<void>;
}

/** What can be undone now: the last thing that was done. Null: nothing. */
export const undoable = signal<Undoable | null>(null);

/** Counts what was undone in this tab, after which pages read again. */
export const undone = signal(0);

let cancelEnd = () => {};

/** Offers to undo what was just done. It replaces the offer before. */
export function offerUndo(offer: Undoable): void {
  undoable.value = offer;
  cancelEnd();
  cancelEnd = after(UNDO_SECONDS * 1_000, forgetUndo);
}

/** Undoes what is offered, once. */
export async function undoOffered(): Promise<void> {
  const offer = undoable.peek();
  if (offer === null) return;
  await offer.undo();
  if (undoable.peek() === offer) forgetUndo();
  undone.value++;
}

function forgetUndo(): void {
  cancelEnd();
  undoable.value = null;
}
