import type { Key } from "../../core/crypto/key-ring.ts";
import { openUrl, sealUrl } from "../../core/crypto/tracking-token.ts";
import { MIN_TEXT_FOR_PICTURE, type OpenTracking } from "../../core/messages/tracking.ts";
import { isAsciiText } from "../../core/text.ts";
import { scanHtml } from "../../mail/text/html-scan.ts";
import { isTrackableUrl, locationOf } from "../../mail/text/href.ts";
import { trackHtml } from "../../mail/tracking.ts";
import { type NamedRecipient, recipientOf, recipientToken } from "./recipient-token.ts";
import { UNSUBSCRIBE_PATH } from "./unsubscribe.ts";

/** Settings of links that record opens and clicks. */
export interface TrackingLinks {
  /** Address of the API as recipients see it, without a slash at its end. Links lead there unless the message has a `linkUrl`. */
  publicUrl: string;
  /** Authenticates the links. One that was not made here records nothing and redirects to nothing. */
  trackingKey: Key;
}

/** Path of the pictures, followed by the recipient's token. */
export const OPEN_PATH = "/o/";
/** Path of the links, followed by the recipient's token, a dot, and the sealed URL. */
export const CLICK_PATH = "/c/";

/** Our own links, which are not tracked. An unsubscribe link names its recipient already. */
const OWN_PATHS = [UNSUBSCRIBE_PATH, OPEN_PATH, CLICK_PATH] as const;

/**
 * Adds the tracking that the message asks for to the html of one recipient's copy.
 * @param exact false if characters beyond ASCII stand for octets of another charset; then URLs with any are not tracked
 */
export function trackedHtml(
  { publicUrl, trackingKey }: TrackingLinks,
  message: { id: string; trackOpens: OpenTracking; trackClicks: boolean; linkUrl: string },
  ord: number,
  html: string,
  exact = true,
): string {
  const opens = message.trackOpens === "auto" ? hasTextForPicture(html) : message.trackOpens;
  if (!opens && !message.trackClicks) return html;
  const { linkUrl } = message;
  const token = recipientToken(trackingKey, { messageId: message.id, ord });
  const own = [...new Set([linkUrl, publicUrl])].flatMap((base) => OWN_PATHS.map((path) => `${base}${path}`));
  const isOwn = (url: string): boolean => own.some((start) => url.startsWith(start));
  return trackHtml(html, {
    pixelUrl: opens ? `${linkUrl}${OPEN_PATH}${token}` : null,
    linkFor: message.trackClicks
      ? (url) =>
          isOwn(url) || !(exact || isAsciiText(url))
            ? null
            : `${linkUrl}${CLICK_PATH}${token}.${sealUrl(trackingKey, token, url)}`
      : null,
  });
}

/** Returns whether the html shows enough text for a picture next to it. White space does not count. */
function hasTextForPicture(html: string): boolean {
  return scanHtml(html).text.replace(/\s+/g, "").length >= MIN_TEXT_FOR_PICTURE;
}

/** Returns the recipient whose picture it is, or null if the token was not made here. */
export function openedBy({ trackingKey }: TrackingLinks, token: string): NamedRecipient | null {
  return recipientOf(trackingKey, token);
}

/** A click: its recipient, the URL, and that URL as a `Location` field. */
export interface Click {
  recipient: NamedRecipient;
  url: string;
  location: string;
}

/** Returns the click on the link of that name, or null if it was not made here for the recipient that it names. */
export function clickOn({ trackingKey }: TrackingLinks, name: string): Click | null {
  const dot = name.indexOf(".");
  const token = name.slice(0, Math.max(0, dot));
  const recipient = recipientOf(trackingKey, token);
  const url = recipient === null ? null : openUrl(trackingKey, token.toLowerCase(), name.slice(dot + 1));
  // Only web pages are redirected to, whatever was sealed.
  if (recipient === null || url === null || !isTrackableUrl(url)) return null;
  return { recipient, url, location: locationOf(url) };
}
