import type { Tracking } from "../core/messages/tracking.ts";
import { type Kind, listFault, listOf } from "./kinds.ts";

const TRACKING_WORDS: readonly string[] = ["opens", "opens-auto", "clicks", "none"];

/** The kinds of tracking. `opens-auto`: opens, if the html has enough text next to the picture. */
export const tracking: Kind<Tracking> = {
  fault(given) {
    const words = new Set(listOf(given));
    const isContradiction =
      (words.has("none") && words.size > 1) || (words.has("opens") && words.has("opens-auto"));
    const form = `must be none, or a comma list of opens (or opens-auto) and clicks`;
    return isContradiction ? form : listFault(given, (item) => TRACKING_WORDS.includes(item), form);
  },
  read(given) {
    const words = listOf(given);
    return {
      opens: words.includes("opens-auto") ? "auto" : words.includes("opens"),
      clicks: words.includes("clicks"),
    };
  },
};
