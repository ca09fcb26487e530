import { openUrl, sealUrl } from "../../core/tracking-token.ts";
import { isTrackableUrl, locationOf } from "../../mail/href.ts";
import { trackHtml } from "../../mail/tracking.ts";
import { type NamedRecipient, recipientOf, recipientToken } from "../recipient-token.ts";
import { UNSUBSCRIBE_PATH } from "./unsubscribe.ts";

/** What makes addresses that tell of opens and clicks. */
export interface TrackingLinks {
  /** Address of the API as recipients see it, without a slash at its end. */
  publicUrl: string;
  /** Authenticates them: one that was not made here records nothing and leads nowhere. */
  trackingKey: Uint8Array;
}

/** Path under which the pictures lie: the recipient's token. */
export const OPEN_PATH = "/o/";
/** Path under which the links lie: the recipient's token, a dot, the sealed URL. */
export const CLICK_PATH = "/c/";

/** Our own links, which are not tracked: an unsubscribe link names its recipient already. */
const OWN_PATHS = [UNSUBSCRIBE_PATH, OPEN_PATH, CLICK_PATH] as const;

/** The html of one recipient's mail with what the message's switches ask for. */
export function trackedHtml(
  { publicUrl, trackingKey }: TrackingLinks,
  message: { id: string; trackOpens: boolean; trackClicks: boolean },
  ord: number,
  html: string,
): string {
  if (!message.trackOpens && !message.trackClicks) return html;
  const token = recipientToken(trackingKey, { messageId: message.id, ord });
  const isOwn = (url: string): boolean => OWN_PATHS.some((path) => url.startsWith(`${publicUrl}${path}`));
  return trackHtml(html, {
    pixelUrl: message.trackOpens ? `${publicUrl}${OPEN_PATH}${token}` : null,
    linkFor: message.trackClicks
      ? (url) => (isOwn(url) ? null : `${publicUrl}${CLICK_PATH}${token}.${sealUrl(trackingKey, token, url)}`)
      : null,
  });
}

/** The recipient whose picture that is; null for a token that is none of ours. */
export function openedBy({ trackingKey }: TrackingLinks, token: string): NamedRecipient | null {
  return recipientOf(trackingKey, token);
}

/** A click: whose, on which URL, and that URL as a `Location` field may hold it. */
export interface Click {
  recipient: NamedRecipient;
  url: string;
  location: string;
}

/** The click on the link of that name; null for one that was not made here for the recipient whom it names. */
export function clickOn({ trackingKey }: TrackingLinks, name: string): Click | null {
  const dot = name.indexOf(".");
  const token = name.slice(0, Math.max(0, dot));
  const recipient = recipientOf(trackingKey, token);
  const url = recipient === null ? null : openUrl(trackingKey, token.toLowerCase(), name.slice(dot + 1));
  // Whatever was sealed: a redirect leads to a web page or nowhere.
  if (recipient === null || url === null || !isTrackableUrl(url)) return null;
  return { recipient, url, location: locationOf(url) };
}
