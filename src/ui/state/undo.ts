import { signal } from "@preact/signals";
import { after } from "../browser/clock.ts";

/** Time for which something can be undone, seconds. Messages are held as long. */
export const UNDO_SECONDS = 10;
/** Maximum number of offers at a time. A newer one replaces the oldest. */
const MAX_OFFERS = 3;

/** Something that was just done and can be undone. */
export interface Undoable {
  /** What was done: `Archived`. */
  text: string;
  undo: () => Promise<void>;
}

/** What can be undone now, the newest last: a reply that was sent can still be taken back after its thread was archived. */
export const undoables = signal<readonly Undoable[]>([]);

/** Counts what was undone in this tab, after which pages read again. */
export const undone = signal(0);

/** Offers to undo what was just done. */
export function offerUndo(offer: Undoable): void {
  undoables.value = [...undoables.peek(), offer].slice(-MAX_OFFERS);
  after(UNDO_SECONDS * 1_000, () => forget(offer));
}

/** Undoes what is offered, once. */
export async function undo(offer: Undoable): Promise<void> {
  if (!undoables.peek().includes(offer)) return;
  await offer.undo();
  forget(offer);
  undone.value++;
}

function forget(offer: Undoable): void {
  undoables.value = undoables.peek().filter((one) => one !== offer);
}
