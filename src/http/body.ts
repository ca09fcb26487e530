import { isAscii } from "node:buffer";
import { AppError } from "../core/errors.ts";
import type { BodyPlace } from "./body-room.ts";

function tooLarge(maxBytes: number): AppError {
  return new AppError("payload_too_large", `The body is larger than ${maxBytes} bytes.`);
}

/**
 * The body's bytes. What `Content-Length` declares as too large is refused unread; a body without a declared length
 * is counted while it is read and dropped at the first byte over: a stream without end must not fill the memory.
 * @param place what the body lies in; null: it is not counted
 * @throws AppError 413 over `maxBytes`, 400 where the client broke off, 503 where the place is too small
 */
export async function readBody(
  request: Request,
  maxBytes: number,
  place: BodyPlace | null = null,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
  if (declared !== null) place?.take(Number(declared));
  try {
    // The server holds the client to the length it declared, so such a body needs no counting. `request.body` is not
    // even looked at: that alone makes a stream, through which all of it would then go.
    if (declared !== null) return new Uint8Array(await request.arrayBuffer());
    return request.body === null ? new Uint8Array() : await readCounted(request.body, maxBytes, place);
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError("invalid_request", "The body could not be read to its end.");
  }
}

async function readCounted(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  place: BodyPlace | null,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  const reader = body.getReader();
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, size);
    size += value.byteLength;
    try {
      if (size > maxBytes) throw tooLarge(maxBytes);
      place?.take(value.byteLength);
    } catch (refusal) {
      // Not awaited: the answer need not wait for the client to stop.
      reader.cancel().catch(() => undefined);
      throw refusal;
    }
    chunks.push(value);
  }
}

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;.*)?$/i;

/**
 * The JSON value of a body; undefined for an empty one.
 * @throws AppError 400 for another content type, for bytes that are encoded or no UTF-8, and for text that is no JSON
 */
export function parseJson(bytes: Uint8Array, headers: Headers): unknown {
  if (bytes.byteLength === 0) return undefined;
  const contentType = headers.get("content-type");
  const encoding = headers.get("content-encoding") ?? "identity";
  if (contentType === null || !JSON_TYPE.test(contentType))
    throw new AppError("invalid_request", "A request with a body needs Content-Type: application/json.");
  // A few compressed octets could become any number of them.
  if (!/^(?:identity)?$/i.test(encoding))
    throw new AppError("invalid_request", "Send the body as it is, without a Content-Encoding.", {
      param: "Content-Encoding",
    });
  try {
    return JSON.parse(textOf(bytes));
  } catch {
    // RangeError included: a text nested too deep for the parser is as good as none.
    throw new AppError("invalid_request", "The body is not valid JSON.");
  }
}

/** The text in bytes of UTF-8. Throws for others. Most of a large body is base64, and ASCII is read in half the time. */
function textOf(bytes: Uint8Array): string {
  if (!isAscii(bytes)) return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
