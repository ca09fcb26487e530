import type { OutRoute } from "../../api/types.ts";
import { countText } from "../../words/amounts.ts";

/** The kinds of routes: a word for lists, and what each does. */
export const KIND_WORDS: Readonly<Record<OutRoute["kind"], { short: string; means: string }>> = {
  mx: { short: "Direct", means: "Mail goes straight to the recipients' mail servers." },
  relay: { short: "Relay", means: "Mail goes through a relay, which delivers it." },
  capture: { short: "Capture", means: "Mail stays on this machine." },
};

/** Returns where a route leads and what limits it, in a few words. */
export function limitsText({ relayHost, pool, ratePerSecond, warmUp }: OutRoute): string {
  const parts = [
    relayHost,
    pool === null ? null : `pool ${pool}`,
    ratePerSecond === null ? null : `${ratePerSecond} a second`,
    warmUp === null ? null : `warms up to ${countText(warmUp.targetPerDay)} a day`,
  ];
  return parts.filter((part) => part !== null).join(" · ");
}
