/** Octets of status line and header fields; an endpoint that never ends them is cut off here. */
const MAX_RESPONSE_HEAD_OCTETS = 16 * 1024;
/** Octets of the answer's body that are read and kept where nothing else is asked for. */
const MAX_RESPONSE_BODY_OCTETS = 4096;
/** 1xx answers before the final one (RFC 9110 §15.2). */
const MAX_INTERIM_RESPONSES = 8;
/** Octets of a chunk-size line, its extensions included. */
const MAX_CHUNK_LINE_OCTETS = 256;

/** An HTTP/1.1 answer as far as it has been read. Header names are in lower case. */
export interface HttpResponse {
  status: number;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
}

export type ReadState =
  /** More bytes are needed. */
  | "reading"
  /** All there is, or all we keep. */
  | "complete"
  /** No HTTP/1.x answer, or one over a limit. */
  | "malformed";

export interface ResponseReader {
  /** Takes bytes from the connection and says how far the answer is. Bytes after "complete" are ignored. */
  push(chunk: Uint8Array): ReadState;
  /** The final answer's head with the body so far; null before its head is complete. */
  response(): HttpResponse | null;
}

interface Head {
  status: number;
  headers: Map<string, string>;
}

interface Reader {
  state: ReadState;
  buffered: Buffer;
  interim: number;
  head: Head | null;
  body: Buffer[];
  /** Octets of the body still to be kept. */
  room: number;
  framing: Framing;
}

/** RFC 9112 §6.3: how the end of the body is told. */
type Framing = { kind: "length"; left: number } | { kind: "chunked"; left: number } | { kind: "close" };

const CRLF = "\r\n";
const STATUS_LINE = /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?$/;
/** RFC 9112 §5.2: a field may go on in the next line, which then begins with white space. */
const FOLD = /\r?\n[ \t]+/g;
/** Spaces about the value are cut off apart: an expression that did it could be made to try for long (ReDoS). */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;

/**
 * Reads one answer, at most the first `maxBodyOctets` of its body. The answer comes from a stranger: every part has a
 * limit.
 */
export function createResponseReader(maxBodyOctets = MAX_RESPONSE_BODY_OCTETS): ResponseReader {
  const reader: Reader = {
    state: "reading",
    buffered: Buffer.alloc(0),
    interim: 0,
    head: null,
    body: [],
    room: maxBodyOctets,
    framing: { kind: "close" },
  };
  return {
    push(chunk) {
      if (reader.state !== "reading") return reader.state;
      reader.buffered =
        reader.buffered.length === 0 ? Buffer.from(chunk) : Buffer.concat([reader.buffered, chunk]);
      reader.state = advance(reader);
      return reader.state;
    },
    response: () => (reader.head === null ? null : { ...reader.head, body: Buffer.concat(reader.body) }),
  };
}

function advance(reader: Reader): ReadState {
  while (reader.head === null) {
    const step = readHead(reader);
    if (step !== "next") return step;
  }
  return reader.framing.kind === "chunked" ? readChunks(reader) : readPlain(reader);
}

/** Takes one head off the buffer; an interim one (1xx) is passed over. */
function readHead(reader: Reader): ReadState | "next" {
  const limited = reader.buffered.subarray(0, MAX_RESPONSE_HEAD_OCTETS);
  const length = headLength(limited);
  if (length < 0) return reader.buffered.length > MAX_RESPONSE_HEAD_OCTETS ? "malformed" : "reading";
  const head = parseHead(limited.toString("latin1", 0, length).trimEnd());
  if (head === null) return "malformed";
  reader.buffered = reader.buffered.subarray(length);
  if (head.status < 200) return ++reader.interim > MAX_INTERIM_RESPONSES ? "malformed" : "next";
  const framing = framingOf(head);
  if (framing === null) return "malformed";
  reader.head = head;
  reader.framing = framing;
  return "next";
}

/**
 * Octets of a head with the empty line that ends it; -1 where that has not come. RFC 9112 §2.2 lets a line end with LF alone, as
 * small servers and scripts write it.
 */
function headLength(octets: Buffer): number {
  const ends = ["\n\r\n", "\n\n"].flatMap((end) => {
    const at = octets.indexOf(end);
    return at < 0 ? [] : [at + end.length];
  });
  return ends.length === 0 ? -1 : Math.min(...ends);
}

function parseHead(text: string): Head | null {
  const [statusLine = "", ...lines] = text.replace(FOLD, " ").split(/\r?\n/);
  const status = STATUS_LINE.exec(statusLine)?.[1];
  if (status === undefined) return null;
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    // The first of several wins; none of those we read may be repeated.
    if (!headers.has(name.toLowerCase())) headers.set(name.toLowerCase(), value.trim());
  }
  return { status: Number(status), headers };
}

function framingOf(head: Head): Framing | null {
  if (head.status === 204 || head.status === 304) return { kind: "length", left: 0 };
  const coding = head.headers.get("transfer-encoding");
  if (coding !== undefined)
    return coding.toLowerCase() === "chunked" ? { kind: "chunked", left: 0 } : { kind: "close" };
  const length = head.headers.get("content-length");
  if (length === undefined) return { kind: "close" };
  return /^\d{1,15}$/.test(length) ? { kind: "length", left: Number(length) } : null;
}

function keep(reader: Reader, octets: Buffer): void {
  const kept = octets.subarray(0, reader.room);
  if (kept.length > 0) reader.body.push(kept);
  reader.room -= kept.length;
}

function readPlain(reader: Reader): ReadState {
  const { framing } = reader;
  const left = framing.kind === "length" ? framing.left : Infinity;
  const octets = reader.buffered.subarray(0, Math.min(left, reader.buffered.length));
  reader.buffered = Buffer.alloc(0);
  keep(reader, octets);
  if (framing.kind === "length") framing.left -= octets.length;
  return reader.room === 0 || left === octets.length ? "complete" : "reading";
}

/** RFC 9112 §7.1. The trailer section is not read: the last chunk ends what we keep. */
function readChunks(reader: Reader): ReadState {
  const { framing } = reader;
  if (framing.kind !== "chunked") return "malformed";
  while (reader.room > 0) {
    if (framing.left === 0) {
      const step = readChunkSize(reader, framing);
      if (step !== "next") return step;
    }
    if (reader.buffered.length === 0) return "reading";
    const data = reader.buffered.subarray(0, framing.left);
    reader.buffered = reader.buffered.subarray(data.length);
    framing.left -= data.length;
    // The last two octets of each chunk are its CRLF, not data.
    const ending = Math.max(0, Math.min(data.length, CRLF.length - framing.left));
    keep(reader, data.subarray(0, data.length - ending));
  }
  return "complete";
}

function readChunkSize(reader: Reader, framing: { left: number }): ReadState | "next" {
  const end = reader.buffered.indexOf(CRLF);
  if (end < 0 || end > MAX_CHUNK_LINE_OCTETS)
    return end > 0 || reader.buffered.length > MAX_CHUNK_LINE_OCTETS ? "malformed" : "reading";
  const size = /^([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?$/.exec(reader.buffered.toString("latin1", 0, end))?.[1];
  if (size === undefined) return "malformed";
  reader.buffered = reader.buffered.subarray(end + CRLF.length);
  if (Number.parseInt(size, 16) === 0) return "complete";
  framing.left = Number.parseInt(size, 16) + CRLF.length;
  return "next";
}
