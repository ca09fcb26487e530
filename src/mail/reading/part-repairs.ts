import { isAscii, isUtf8 } from "node:buffer";

/** Octets of a page in which its charset is looked for, as in a browser. */
const MAX_META_OCTETS = 1024;

/** A part as the MIME reader keeps it, and what of it is put right here; its typings leave the tree out. */
interface MimePart {
  content?: unknown;
  contentType: {
    parsed: { value: string; params: Record<string, string | undefined> };
    multipart: string | false;
  };
  contentDisposition: { parsed: { value: string; params: Record<string, string | undefined> } };
  childNodes: readonly MimePart[];
  decodeFlowedText: (text: string, deleteSpace: boolean) => string;
}

/** The step of the MIME reader after which all parts are known, and none is made text or attachment yet. */
interface Reader {
  root: MimePart;
  finalize: () => Promise<void>;
}

/**
 * Lets the reader take parts for what they are where it would not: text in a charset that is not named or not known,
 * quoted lines of flowed text, a malformed type, a file of text that came along.
 */
export function repairParts(reader: object): void {
  // The reader's declarations leave its steps out.
  const steps = reader as Reader;
  const finalize = steps.finalize.bind(reader);
  steps.finalize = async () => {
    await finalize();
    repair(steps.root, null, 0);
  };
}

/** Depth is bounded by the reader's own limit. */
function repair(part: MimePart, parent: MimePart | null, place: number): void {
  const { parsed } = part.contentType;
  // RFC 2045 §5.2: a type that breaks the grammar is none, and what has none is plain text, unless it came as a file.
  if (!parsed.value.includes("/") && nameOf(part) === "") parsed.value = "text/plain";
  if (/^text\/(?:plain|html)$/.test(parsed.value)) {
    part.decodeFlowedText = unflow;
    if (part.content instanceof ArrayBuffer) nameCharset(parsed, new Uint8Array(part.content));
    if (isFile(part, parent, place)) part.contentDisposition.parsed.value = "attachment";
  }
  for (const [at, child] of part.childNodes.entries()) repair(child, part, at);
}

/**
 * A text with a name that stands behind other parts came along as a file, whether or not its disposition says so
 * (RFC 8621 §4.1.4); shown as text it would lose its name and its end.
 */
function isFile(part: MimePart, parent: MimePart | null, place: number): boolean {
  return (
    nameOf(part) !== "" && place > 0 && parent !== null && parent.contentType.multipart !== "alternative"
  );
}

function nameOf({ contentType, contentDisposition }: MimePart): string {
  return contentDisposition.parsed.params.filename ?? contentType.parsed.params.name ?? "";
}

/** What is to be read as text that does not say how: UTF-8 where it is that, else what old programs write. */
function nameCharset({ value, params }: MimePart["contentType"]["parsed"], bytes: Uint8Array): void {
  if (isAscii(bytes)) return;
  const charset = (params.charset ?? "").trim().toLowerCase();
  const unnamed = charset === "" || charset === "us-ascii" || charset === "ascii";
  if (isUtf8(bytes)) {
    if (unnamed || !isKnown(charset)) params.charset = "utf-8";
  } else if (unnamed) {
    params.charset = (value === "text/html" ? metaCharset(bytes) : null) ?? "windows-1252";
  }
}

/** The charset that a page names in its head; null where it names none that is known. */
function metaCharset(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, MAX_META_OCTETS)).toString("latin1");
  const charset = /<meta\b[^>]{0,200}?\bcharset\s*=\s*["']?([a-z0-9_:.-]{1,40})/i.exec(head)?.[1] ?? "";
  return isKnown(charset) ? charset : null;
}

function isKnown(charset: string): boolean {
  try {
    // The declarations know a few labels alone.
    return new TextDecoder(charset as ConstructorParameters<typeof TextDecoder>[0]).encoding !== "";
  } catch {
    return false;
  }
}

/**
 * The text of format=flowed (RFC 3676 §4): a line that ends in a space goes on in the next one, if that is quoted as
 * deeply. So an answer below a quoted line stays a line of its own.
 */
export function unflow(text: string, deleteSpace: boolean): string {
  const paragraphs: string[] = [];
  let pieces: string[] = [];
  let depth = 0;
  let goesOn = false;
  for (const raw of text.split(/\r?\n/)) {
    const quotes = /^>*/.exec(raw)?.[0].length ?? 0;
    const line = raw.slice(quotes).replace(/^ /, "");
    if (!goesOn || quotes !== depth || line === "-- ") {
      if (pieces.length > 0) paragraphs.push(paragraph(depth, pieces));
      pieces = [];
      depth = quotes;
    }
    goesOn = line.endsWith(" ") && line !== "-- ";
    pieces.push(goesOn && deleteSpace ? line.slice(0, -1) : line);
  }
  paragraphs.push(paragraph(depth, pieces));
  return paragraphs.join("\n");
}

function paragraph(depth: number, pieces: readonly string[]): string {
  const text = pieces.join("");
  if (depth === 0) return text;
  return `${">".repeat(depth)}${text === "" ? "" : ` ${text}`}`;
}
