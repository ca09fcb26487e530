/** The bodies of a message. They are stored as one content. */
export interface MessageBody {
  html: string | null;
  text: string | null;
  /** The text of a received message without quotes; null if that is the whole text. */
  replyText?: string | null;
  /** The header fields of a received message that the API shows. */
  headers?: Record<string, string>;
}

/** The JSON after the bodies of a stored message. */
export interface BodyEnd {
  /** Bytes of html, text and reply text; null if the message has no such text. */
  octets: (number | null)[];
  headers?: Record<string, string> | undefined;
}

/** The last byte of a body. */
const END = "\0";
/** Hexadecimal digits before the last byte: the length of the JSON in bytes. */
const LENGTH_DIGITS = 8;

/**
 * Encodes a message's bodies: one after another in UTF-8, then the JSON with their lengths. Each is encoded by
 * itself, so a lone surrogate becomes the replacement character. Otherwise the last unit of one and the first of
 * the next could form a character that belongs to neither.
 */
export function bodyBytes({ html, text, replyText = null, headers }: MessageBody): Uint8Array {
  const texts = [html, text, replyText];
  const octets = texts.map((one) => (one === null ? null : Buffer.byteLength(one)));
  const end = bodyEnd({ octets, headers });
  const size = octets.reduce<number>((sum, one) => sum + (one ?? 0), Buffer.byteLength(end));
  // One buffer, written once. Joining a buffer per text takes twice as long.
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const one of texts) if (one !== null) at += bytes.write(one, at);
  bytes.write(end, at);
  return bytes;
}

/** Encodes the end of a body. */
export function bodyEnd(end: BodyEnd): string {
  const json = JSON.stringify(end);
  return `${json}${Buffer.byteLength(json).toString(16).padStart(LENGTH_DIGITS, "0")}${END}`;
}

/** Returns the size of a body's end in bytes, from the body's last bytes. */
export function bodyEndSize(last: Uint8Array): number {
  const end = last.length - END.length - LENGTH_DIGITS;
  const digits = Buffer.from(last.subarray(end, end + LENGTH_DIGITS)).toString("latin1");
  return Number.parseInt(digits, 16) + LENGTH_DIGITS + END.length;
}

/** Returns the end of a body, given its last bytes: the whole end, or more. */
export function bodyEndIn(last: Uint8Array): BodyEnd {
  const from = last.length - bodyEndSize(last);
  const json = last.subarray(from, last.length - LENGTH_DIGITS - END.length);
  return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.length).toString());
}

/** Decodes a body. */
export function bodyIn(bytes: Uint8Array): MessageBody {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { octets, headers } = bodyEndIn(body);
  let at = 0;
  const [html = null, text = null, replyText = null] = octets.map((size) => {
    const from = at;
    at += size ?? 0;
    return size === null ? null : body.toString("utf8", from, at);
  });
  return { html, text, replyText, ...(headers === undefined ? {} : { headers }) };
}

/** The body of a message that had none, or whose content retention has removed. */
export const NO_BODY: MessageBody = { html: null, text: null };
