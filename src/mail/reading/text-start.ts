/** Characters of a line that show what it is. */
const SHOWN_CHARS = 200;
const PARAMETER = /^[a-z][a-z\d*-]{0,40}[ \t]*=/i;
/** Parameters that may even lack the semicolon before them. */
const CLEAR_PARAMETER = /^(?:boundary|charset|name|filename)[ \t]*=/i;

/**
 * Returns a line as it should continue a field of the MIME structure, if it is a parameter that lacks the space before
 * it (RFC 5322 §2.2.3). Null if it is none.
 * @param before the line before it
 */
export function unfoldedParameter(line: string, before: string): string | null {
  const start = line.slice(0, SHOWN_CHARS);
  if (!PARAMETER.test(start)) return null;
  if (before.slice(-SHOWN_CHARS).trimEnd().endsWith(";")) return ` ${line}`;
  return CLEAR_PARAMETER.test(start) ? ` ;${line}` : null;
}

/** Fields of a header. A line that is no field cannot begin the text above one: an author must not be hidden in it. */
const KNOWN_FIELD =
  /^(?:(?:resent-)?(?:from|sender|to|cc|bcc|date|message-id)|reply-to|subject|in-reply-to|references|return-path|received|received-spf|mime-version|delivered-to|dkim-signature|authentication-results|auto-submitted|precedence|(?:content|arc|list|x|domainkey)-[\w-]{1,80})[ \t]*:/i;
const FIELD = /^[\x21-\x39\x3b-\x7e]{1,100}[ \t]*:/;
const FOLD = /^[ \t]/;
const DELIMITER = /^--\S/;
const PART_FIELD = /^content-[a-z-]{1,40}:/i;

/**
 * Returns where the text begins if the empty line before it is missing: at the first line that is no field. If a known
 * field follows, the line belongs to the header. A delimiter above a part's field belongs to the text.
 * @param end the end of the header's lines
 */
export function textStart(raw: Uint8Array, from: number, end: number): number {
  const block = Buffer.from(raw.buffer, raw.byteOffset + from, end - from).toString("latin1");
  let start = -1;
  let before = "";
  for (let at = 0; at < block.length; ) {
    const lf = block.indexOf("\n", at);
    const next = lf < 0 ? block.length : lf + 1;
    const line = block.slice(at, next).trimEnd();
    const shown = line.slice(0, SHOWN_CHARS);
    if (DELIMITER.test(shown) && PART_FIELD.test(block.slice(next, next + SHOWN_CHARS))) return from + at;
    if (KNOWN_FIELD.test(shown)) start = -1;
    else if (start < 0 && !isOfHeader(shown, before)) start = at;
    before = line;
    at = next;
  }
  return start < 0 ? end : from + start;
}

function isOfHeader(line: string, before: string): boolean {
  return line === "" || FOLD.test(line) || FIELD.test(line) || unfoldedParameter(line, before) !== null;
}
