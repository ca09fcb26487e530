/**
 * Measures worst cases one after another, which its parent names by their place in the list. It reports each input before it
 * reads it, so that the parent can end a process whose thread is held for good.
 */
import { growthOf, type Growth } from "./growth.ts";
import { WORST_CASES } from "./worst/all.ts";

/** A report to the parent. */
export type GrowthMessage = { began: number } | { growth: Growth };

function tell(message: GrowthMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.send?.(message, undefined, undefined, () => resolve());
  return promise;
}

process.on("message", (place: number) => {
  const worst = WORST_CASES[place];
  if (worst === undefined) throw new Error(`there is no case ${place}`);
  void growthOf(worst, (began) => tell({ began })).then((growth) => tell({ growth }));
});
