import type { Clock } from "../core/clock.ts";

/** Time between two looks, milliseconds. */
export const LAG_LOOK_MS = 250;

/** Tells again and again how late a timer was: what holds the event loop makes all else as late. Returns its stop. */
export function watchLag(clock: Clock, tell: (seconds: number) => void): () => void {
  let cancel = (): void => undefined;
  const look = (): void => {
    const due = clock.now() + LAG_LOOK_MS;
    cancel = clock.after(LAG_LOOK_MS, () => {
      tell((clock.now() - due) / 1000);
      look();
    });
  };
  look();
  return () => cancel();
}
