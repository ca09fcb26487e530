import type { ScannedHtml } from "./html-scan.ts";

/** Words at the beginning of newsletters that say nothing about them. */
const VIEW_ONLINE =
  /^(?:view (?:this )?(?:e-?mail|message|it )?.{0,20}(?:browser|online)|(?:web|online)[- ]?version|(?:im|in) browser|voir .{0,30}navigateur|ver .{0,30}navegador|problems? viewing|having trouble)/i;

/**
 * Returns what the list of messages shows next to the subject, in words, if it says nothing about the message; else null. Programs
 * take the first words of the html, hidden ones included (the preheader).
 */
export function preheaderFault(
  subject: string,
  { text, lead }: Pick<ScannedHtml, "text" | "lead">,
): string | null {
  const [first = ""] = text.split("\n");
  if (first === "" && lead !== "picture") return "nothing, because the html has no words";
  if (VIEW_ONLINE.test(first)) return "that the message can be read in a browser";
  if (lead === "picture") return "what a picture is called";
  if (lead === "link") return "the text of a link";
  if (plain(first) !== "" && plain(first) === plain(subject)) return "the subject again";
  return null;
}

/** Returns the letters and digits alone, in lower case. */
function plain(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}
