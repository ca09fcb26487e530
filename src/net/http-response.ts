/** Maximum octets of status line and header fields. If the head is longer, the response is malformed. */
const MAX_RESPONSE_HEAD_OCTETS = 16 * 1024;
/** Maximum octets of the body that are kept by default. */
const MAX_RESPONSE_BODY_OCTETS = 4096;
/** 1xx responses before the final one (RFC 9110 §15.2). */
const MAX_INTERIM_RESPONSES = 8;
/** Maximum octets of a chunk-size line with its extensions. */
const MAX_CHUNK_LINE_OCTETS = 256;

/** The part of an HTTP/1.1 response that was read. Header names are in lower case. */
export interface HttpResponse {
  status: number;
  headers: ReadonlyMap<string, string>;
  body: Buffer;
}

export type ReadState =
  /** More bytes are needed. */
  | "reading"
  /** The whole response, or all that is kept. */
  | "complete"
  /** Not HTTP/1.x, or over a limit. */
  | "malformed";

export interface ResponseReader {
  /** Adds bytes from the connection. Bytes after "complete" are ignored. */
  push(chunk: Uint8Array): ReadState;
  /** Returns the final head with the body so far, or null if the head is incomplete. */
  response(): HttpResponse | null;
}

interface Head {
  status: number;
  headers: Map<string, string>;
}

interface Reader {
  state: ReadState;
  /** Octets received and not read yet. */
  buffered: Buffer;
  /** Unused octets of the memory after `buffered`. */
  spare: number;
  /** Octets at the start of `buffered` in which no head ends. */
  searched: number;
  interim: number;
  head: Head | null;
  body: Buffer[];
  /** Octets of the body that may still be kept. */
  room: number;
  framing: Framing;
}

/** RFC 9112 §6.3: how the end of the body is determined. */
type Framing = { kind: "length"; left: number } | { kind: "chunked"; left: number } | { kind: "close" };

const CRLF = "\r\n";
const STATUS_LINE = /^HTTP\/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?$/;
/** RFC 9112 §5.2: if a line begins with white space, it continues the field before. */
const FOLD = /\r?\n[ \t]+/g;
/** White space around the value is trimmed separately: a pattern for it could take very long (ReDoS). */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;

/** Reads one response, up to `maxBodyOctets` of its body. The sender is not trusted, so every part has a limit. */
export function createResponseReader(maxBodyOctets = MAX_RESPONSE_BODY_OCTETS): ResponseReader {
  const reader: Reader = {
    state: "reading",
    buffered: Buffer.alloc(0),
    spare: 0,
    searched: 0,
    interim: 0,
    head: null,
    body: [],
    room: maxBodyOctets,
    framing: { kind: "close" },
  };
  return {
    push(chunk) {
      if (reader.state !== "reading") return reader.state;
      append(reader, chunk);
      reader.state = advance(reader);
      return reader.state;
    },
    response: () => (reader.head === null ? null : { ...reader.head, body: Buffer.concat(reader.body) }),
  };
}

/** Adds a piece to what is buffered. The memory doubles when it is full, so that small pieces cost linear time. */
function append(reader: Reader, chunk: Uint8Array): void {
  const { buffered } = reader;
  const size = buffered.length + chunk.length;
  if (buffered.length > 0 && chunk.length <= reader.spare) {
    reader.buffered = Buffer.from(buffered.buffer, buffered.byteOffset, size);
    reader.spare -= chunk.length;
  } else {
    const memory = Buffer.allocUnsafeSlow(buffered.length === 0 ? size : 2 * size);
    memory.set(buffered);
    reader.buffered = memory.subarray(0, size);
    reader.spare = memory.length - size;
  }
  reader.buffered.set(chunk, buffered.length);
}

function advance(reader: Reader): ReadState {
  while (reader.head === null) {
    const step = readHead(reader);
    if (step !== "next") return step;
  }
  return reader.framing.kind === "chunked" ? readChunks(reader) : readPlain(reader);
}

/** Reads one head from the buffer. Skips interim ones (1xx). */
function readHead(reader: Reader): ReadState | "next" {
  const limited = reader.buffered.subarray(0, MAX_RESPONSE_HEAD_OCTETS);
  const length = headLength(limited, reader.searched);
  reader.searched = Math.max(0, limited.length - MAX_HEAD_END_OCTETS + 1);
  if (length < 0) return reader.buffered.length > MAX_RESPONSE_HEAD_OCTETS ? "malformed" : "reading";
  const head = parseHead(limited.toString("latin1", 0, length).trimEnd());
  if (head === null) return "malformed";
  reader.buffered = reader.buffered.subarray(length);
  reader.searched = 0;
  if (head.status < 200) return ++reader.interim > MAX_INTERIM_RESPONSES ? "malformed" : "next";
  const framing = framingOf(head);
  if (framing === null) return "malformed";
  reader.head = head;
  reader.framing = framing;
  return "next";
}

const HEAD_ENDS = ["\n\r\n", "\n\n"];
const MAX_HEAD_END_OCTETS = 3;

/**
 * Returns the octets of a head with the empty line that ends it, or -1 if that has not come. RFC 9112 §2.2 lets a line end
 * with LF alone, as small servers and scripts write it.
 * @param from index before which no end begins
 */
function headLength(octets: Buffer, from: number): number {
  const ends = HEAD_ENDS.flatMap((end) => {
    const at = octets.indexOf(end, from);
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
    // If a field is repeated, the first one counts; no field that we read may be repeated.
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

/** RFC 9112 §7.1. The trailer section is not read, because the last chunk ends the body. */
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
