import type { Visit } from "../../../core/machine-agents.ts";
import { existing } from "../../../core/errors.ts";
import { createHitRecorder, type TrackDeps } from "../../../flows/deliver/track.ts";
import { CLICK_PATH, clickOn, OPEN_PATH, openedBy } from "../../../flows/mime/tracking-links.ts";
import { raw } from "../../routing/answer.ts";
import { openRoute, type Route } from "../../routing/route.ts";

/** A GIF of one transparent pixel. */
const PIXEL = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

/** Headers in which browsers and proxies announce a prefetch. */
const PURPOSE_FIELDS = ["sec-purpose", "purpose", "x-purpose", "x-moz"] as const;

/** Returns the routes of tracking pixels and links. A link's target comes only from the link itself. */
export function trackingRoutes(deps: TrackDeps): Route[] {
  const record = createHitRecorder(deps);
  const open = openRoute({
    method: "GET",
    path: `${OPEN_PATH}:token`,
    operationId: "trackOpen",
    summary: "Record an open and return the tracking pixel",
    description: "Part of html that is sent with open tracking.",
    answers: { 200: "image/gif" },
    errors: ["not_found"],
    async handle({ params, request, ip }) {
      const recipient = existing("picture", openedBy(deps, params.token));
      await record({ recipient, url: null, visit: visitOf(request, ip) });
      return raw(PIXEL, "image/gif", { "cache-control": "no-store" });
    },
  });
  const click = openRoute({
    method: "GET",
    path: `${CLICK_PATH}:link`,
    operationId: "trackClick",
    summary: "Record a click on a tracked link and redirect to its target",
    description: "Links in html that is sent with click tracking lead here.",
    answers: { 302: null },
    errors: ["not_found"],
    async handle({ params, request, ip }) {
      const click = existing("link", clickOn(deps, params.link));
      await record({ recipient: click.recipient, url: click.url, visit: visitOf(request, ip) });
      const headers = {
        location: click.location,
        "cache-control": "no-store",
        // The target page must not learn the link, because with it anyone could click in the recipient's name.
        "referrer-policy": "no-referrer",
      };
      return { status: 302, body: undefined, headers };
    },
  });
  return [open, click];
}

function visitOf({ method, headers }: Request, ip: string | null): Visit {
  const purposes = PURPOSE_FIELDS.map((name) => headers.get(name)).filter((value) => value !== null);
  return {
    method,
    ip,
    userAgent: headers.get("user-agent"),
    purpose: purposes.length === 0 ? null : purposes.join(", "),
  };
}
