import { decoded } from "./content-bytes.ts";

/** What a message says, as one piece of bytes. */
export interface MessageBody {
  html: string | null;
  text: string | null;
  /** Of received mail, its new part; null where that is all of the text. */
  replyText?: string | null;
  /** Of received mail, the header fields that its record shows. */
  headers?: Record<string, string>;
}

/** What stands behind the texts of a body, as JSON. */
interface BodyEnd {
  /** Octets of html, text and reply text; null: it has none. */
  octets: (number | null)[];
  headers?: Record<string, string> | undefined;
}

/** The last octet of a body. Earlier releases kept bodies as JSON, which ends with a brace. */
const END = "\0";
/** Hexadecimal digits in front of it: how many octets the JSON takes. */
const LENGTH_DIGITS = 8;
const CLOSING_BRACE = 0x7d;

/**
 * The bytes of a body: its texts in UTF-8, one after another as they are, and what tells them apart. A lone surrogate is
 * no character, and becomes the replacement one as in every other text: each text is encoded by itself, or the last of
 * one and the first of the next would make a character that belongs to neither.
 */
export function bodyBytes({ html, text, replyText = null, headers }: MessageBody): Uint8Array {
  const texts = [html, text, replyText];
  const octets = texts.map((one) => (one === null ? null : Buffer.byteLength(one)));
  const end = bodyEnd({ octets, headers });
  const size = octets.reduce<number>((sum, one) => sum + (one ?? 0), Buffer.byteLength(end));
  // Memory of its own, written once: buffers of each that are joined take twice as long.
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const one of texts) if (one !== null) at += bytes.write(one, at);
  bytes.write(end, at);
  return bytes;
}

/** What stands behind the texts of a body. */
export function bodyEnd(end: BodyEnd): string {
  const json = JSON.stringify(end);
  return `${json}${Buffer.byteLength(json).toString(16).padStart(LENGTH_DIGITS, "0")}${END}`;
}

/** The body in those bytes. */
export function bodyIn(bytes: Uint8Array): MessageBody {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (body.at(-1) === CLOSING_BRACE) return JSON.parse(body.toString());
  const end = body.length - END.length - LENGTH_DIGITS;
  const length = Number.parseInt(body.toString("latin1", end, end + LENGTH_DIGITS), 16);
  const { octets, headers }: BodyEnd = JSON.parse(body.toString("utf8", end - length, end));
  let at = 0;
  const [html = null, text = null, replyText = null] = octets.map((size) => {
    const from = at;
    at += size ?? 0;
    return size === null ? null : body.toString("utf8", from, at);
  });
  return { html, text, replyText, ...(headers === undefined ? {} : { headers }) };
}

/** With what JSON begins, and no compressed bytes do. */
const OPENING_BRACE = 0x7b;

/** The body that stands in a message's row, as earlier releases kept small ones. */
export function bodyInline(inline: Uint8Array): MessageBody {
  return bodyIn(inline[0] === OPENING_BRACE ? inline : decoded(inline, "zstd"));
}

/** That of a message whose bodies are not there: it had none, or they have been let go of. */
export const NO_BODY: MessageBody = { html: null, text: null };
