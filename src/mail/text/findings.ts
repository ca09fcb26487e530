import { type Link, scanHtml, type ScannedHtml } from "./html-scan.ts";
import { preheaderFault } from "./preheader.ts";

/** Something about a message that may keep it from its reader. */
export interface Finding {
  level: "error" | "warning" | "info";
  code: string;
  message: string;
  fix: string;
}

/** The parts of a message that are checked. */
export interface Draft {
  subject: string;
  html: string | null;
  text: string | null;
  /** True if a missing text is made from the html. */
  makesText: boolean;
  /** True if it has a way to unsubscribe in its header. */
  unsubscribes: boolean;
  attachments: readonly { filename: string; octets: number }[];
  /** Octets of the html as it leaves, with tracked links and picture. */
  htmlOctets: number;
}

/** Octets of html after which Gmail shows no more. */
export const CLIPPED_OCTETS = 102 * 1024;
/** Octets of an image that take a phone seconds to load. */
export const LARGE_IMAGE_OCTETS = 1024 * 1024;
/** Octets of attachments beyond which many servers refuse a message. */
export const LARGE_MESSAGE_OCTETS = 10 * 1024 * 1024;
/** Maximum number of findings of one kind. More would not help. */
const MAX_OF_A_KIND = 10;
/** Characters of a subject that most programs show. */
const SHOWN_SUBJECT_CHARS = 78;

/** File extensions that most providers refuse, and those that they inspect closely. */
const REFUSED_FILES =
  /\.(?:exe|com|scr|bat|cmd|pif|js|jse|vbs|vbe|wsf|hta|jar|msi|ps1|reg|lnk|iso|img|cpl)$/i;
const DOUBTED_FILES = /\.(?:docm|xlsm|pptm|zip|rar|7z|htm|html)$/i;
const IMAGES = /\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic)$/i;
const UNSUBSCRIBE =
  /unsubscribe|abmelden|abbestellen|désabonn|désinscri|darse de baja|cancelar|disiscri|afmelden|unsubscribeUrl/i;

/** The variable of the link, which is filled in as the message leaves. */
const LINK = /\{\{-?\s*unsubscribeUrl\b/;

/** Returns what may keep a message from its reader, worst first. */
export function findingsIn(draft: Draft): Finding[] {
  const scanned = scanHtml(draft.html ?? "");
  const { links, text } = scanned;
  return [
    ...bodyFindings(draft),
    ...(draft.html === null ? [] : preheaderFindings(draft.subject, scanned)),
    ...mismatches(links),
    ...plainLinks(links),
    ...unsubscribeFindings(draft, `${text} ${links.map((link) => `${link.text} ${link.url}`).join(" ")}`),
    ...draft.attachments.flatMap(attachmentFindings).slice(0, MAX_OF_A_KIND),
    ...sizeFindings(draft),
  ].toSorted((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}

const LEVELS: readonly Finding["level"][] = ["error", "warning", "info"];

function bodyFindings({ subject, html, text, makesText, htmlOctets }: Draft): Finding[] {
  return [
    ...(html !== null && (text ?? "").trim() === "" && !(text === null && makesText)
      ? [
          warning(
            "missing_text",
            "The message has no plain text part.",
            "Add `text`: some readers and filters need it.",
          ),
        ]
      : []),
    ...(htmlOctets > CLIPPED_OCTETS
      ? [
          warning(
            "html_clipped",
            `The html leaves with ${htmlOctets} octets, tracked links included. Gmail shows the first ${CLIPPED_OCTETS} and hides the rest.`,
            "Shorten it, and take styles that are not used out of it.",
          ),
        ]
      : []),
    ...(subject.trim() === "" ? [warning("no_subject", "The subject is empty.", "Write one.")] : []),
    ...(subject.length > SHOWN_SUBJECT_CHARS
      ? [
          info(
            "long_subject",
            `Most programs show ${SHOWN_SUBJECT_CHARS} characters of a subject.`,
            "Shorten it.",
          ),
        ]
      : []),
  ];
}

function preheaderFindings(subject: string, scanned: ScannedHtml): Finding[] {
  const shown = preheaderFault(subject, scanned);
  if (shown === null) return [];
  return [
    info(
      "no_preheader",
      `Next to the subject, the list of messages shows ${shown}.`,
      "Begin the html with a sentence about the message, visible or hidden (a preheader).",
    ),
  ];
}

/** Finds links whose text names another host than their address, as in phishing. */
function mismatches(links: readonly Link[]): Finding[] {
  return links
    .flatMap(({ url, text }) => {
      const [named, host] = [hostNamed(text), new URL(url).hostname.toLowerCase()];
      if (named === null || isSameSite(named, host)) return [];
      return [
        warning(
          "link_text_mismatch",
          `A link says ${named} and leads to ${host}.`,
          "Let the text name the host of the address, or no host. Filters take such links for fraud.",
        ),
      ];
    })
    .slice(0, MAX_OF_A_KIND);
}

function plainLinks(links: readonly Link[]): Finding[] {
  const count = links.filter(({ url }) => /^http:/i.test(url)).length;
  return count === 0 ? [] : [info("insecure_link", `${count} links begin with http://.`, "Use https://.")];
}

/** Returns the host that the text of a link names; null if it names none. */
function hostNamed(text: string): string | null {
  return (
    /^(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24})(?:[/?#:]\S*)?$/i
      .exec(text.trim())?.[1]
      ?.toLowerCase() ?? null
  );
}

function isSameSite(one: string, other: string): boolean {
  const [a, b] = [one, other].map((host) => host.replace(/^www\./, ""));
  return a === b || a?.endsWith(`.${b}`) === true || b?.endsWith(`.${a}`) === true;
}

function unsubscribeFindings({ unsubscribes, html, text }: Draft, shown: string): Finding[] {
  if (UNSUBSCRIBE.test(shown) || UNSUBSCRIBE.test(text ?? "") || LINK.test(html ?? "")) return [];
  if (unsubscribes)
    return [
      warning(
        "no_visible_unsubscribe",
        "The header unsubscribes by one click, but the message shows no link for it.",
        "Show `{{ unsubscribeUrl }}` in the text: not every program shows a button, and providers require a link.",
      ),
    ];
  return [
    info(
      "no_unsubscribe",
      "The message has no way to unsubscribe.",
      "If it goes to many, set `unsubscribeLink`: Gmail and Yahoo require it of bulk mail.",
    ),
  ];
}

function attachmentFindings({ filename, octets }: Draft["attachments"][number]): Finding[] {
  if (REFUSED_FILES.test(filename))
    return [
      warning(
        "refused_attachment",
        `Most providers refuse ${filename}.`,
        "Offer it for download, and send a link.",
      ),
    ];
  if (DOUBTED_FILES.test(filename))
    return [info("doubted_attachment", `Filters look closely at ${filename}.`, "Send a PDF, or a link.")];
  if (IMAGES.test(filename) && octets > LARGE_IMAGE_OCTETS)
    return [
      warning("large_image", `${filename} has ${octets} octets.`, "Make it smaller: phones load it slowly."),
    ];
  return [];
}

function sizeFindings({ attachments }: Draft): Finding[] {
  const octets = attachments.reduce((sum, attachment) => sum + attachment.octets, 0);
  if (octets <= LARGE_MESSAGE_OCTETS) return [];
  return [
    warning(
      "large_message",
      `The attachments have ${octets} octets.`,
      "Send links: many servers refuse so much.",
    ),
  ];
}

/** Returns a finding that should be mended. */
export function warning(code: string, message: string, fix: string): Finding {
  return { level: "warning", code, message, fix };
}

function info(code: string, message: string, fix: string): Finding {
  return { level: "info", code, message, fix };
}
