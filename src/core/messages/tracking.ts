import { Type } from "@sinclair/typebox";

/** The values of open tracking. `auto`: the html gets the picture only if it has enough text next to it. */
export const OPEN_TRACKING = [false, true, "auto"] as const;

export type OpenTracking = (typeof OPEN_TRACKING)[number];

/** The tracking of a message or a project. */
export interface Tracking {
  opens: OpenTracking;
  clicks: boolean;
}

/** Visible characters from which `auto` adds the picture. Filters score a picture next to less text, as SpamAssassin's HTML_IMAGE_ONLY does. */
export const MIN_TEXT_FOR_PICTURE = 3200;

/** The schema of `tracking.opens`. */
export const OpenTrackingSchema = Type.Union([Type.Boolean(), Type.Literal("auto")], {
  description: `\`auto\`: opens are tracked only if the html has at least ${MIN_TEXT_FOR_PICTURE} characters of text, because filters distrust a picture next to less.`,
  examples: [true],
});

/** Returns what is tracked as a project stores it. */
export function trackingSwitches({ opens, clicks }: Tracking): {
  trackOpens: OpenTracking;
  trackClicks: boolean;
} {
  return { trackOpens: opens, trackClicks: clicks };
}
