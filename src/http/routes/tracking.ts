import type { Visit } from "../../core/machine-agents.ts";
import { notFound } from "../../core/errors.ts";
import { createHitRecorder, type TrackDeps } from "../../flows/send/track.ts";
import { CLICK_PATH, clickOn, OPEN_PATH, openedBy } from "../../flows/send/tracking-links.ts";
import { raw } from "../answer.ts";
import { openRoute, type Route } from "../route.ts";

/** One transparent dot. */
const PIXEL = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

/** Header fields by which browsers and proxies say that they only fetch in advance. */
const PURPOSE_FIELDS = ["sec-purpose", "purpose", "x-purpose", "x-moz"] as const;

/** The picture and the links in tracked mails. Only what a link itself says decides where it leads. */
export function trackingRoutes(deps: TrackDeps): Route[] {
  const record = createHitRecorder(deps);
  const open = openRoute({
    method: "GET",
    path: `${OPEN_PATH}:token`,
    operationId: "trackOpen",
    summary: "The picture in a mail; records an open",
    answers: { 200: "image/gif" },
    errors: ["not_found"],
    async handle({ params, request, ip }) {
      const recipient = openedBy(deps, params.token);
      if (recipient === null) throw notFound("picture");
      await record({ recipient, url: null, visit: visitOf(request, ip) });
      return raw(PIXEL, "image/gif", { "cache-control": "no-store" });
    },
  });
  const click = openRoute({
    method: "GET",
    path: `${CLICK_PATH}:link`,
    operationId: "trackClick",
    summary: "A link in a mail; records a click and leads on",
    answers: { 302: null },
    errors: ["not_found"],
    async handle({ params, request, ip }) {
      const click = clickOn(deps, params.link);
      if (click === null) throw notFound("link");
      await record({ recipient: click.recipient, url: click.url, visit: visitOf(request, ip) });
      const headers = {
        location: click.location,
        "cache-control": "no-store",
        // The page led to must not learn the link: whoever has it can click in the recipient's name.
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
