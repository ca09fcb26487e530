import { newId } from "../../core/ids.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import { CLIPPED_OCTETS } from "../../mail/text/findings.ts";
import type { Project } from "../../store/projects/projects.ts";
import { trackedHtml, type TrackingLinks } from "../mime/tracking-links.ts";

/** Octets of html below which its tracked form is not measured for a send. It grows threefold at most, in practice. */
const UNMEASURED_OCTETS = CLIPPED_OCTETS / 3;

/** Returns the octets of a send's html as it leaves, with tracked links and picture. Tracking may double them. */
export function leavingOctets(
  links: TrackingLinks,
  project: Project,
  { tracking }: Pick<ReadItem, "tracking">,
  html: string | null,
): number {
  if (html === null) return 0;
  const trackOpens = tracking?.opens ?? project.trackOpens;
  const trackClicks = tracking?.clicks ?? project.trackClicks;
  const measured = { id: newId("msg", 0), trackOpens, trackClicks, linkUrl: links.publicUrl };
  return Buffer.byteLength(trackedHtml(links, measured, 0, html));
}

/** Returns whether Gmail would hide the end of the html that a send gives. */
export function isClipped(links: TrackingLinks, project: Project, item: ReadItem): boolean {
  const { html = null } = item;
  if (html === null || html.length < UNMEASURED_OCTETS) return false;
  return leavingOctets(links, project, item, html) > CLIPPED_OCTETS;
}
