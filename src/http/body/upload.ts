import { createHash } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import type { Fingerprint } from "../access/idempotency.ts";
import type { Upload } from "../routing/route.ts";
import { type BodyReading, checkEncoding, timeOf, tooLarge } from "./body.ts";

/**
 * Memory that an upload holds while it is read, bytes. Bun reads no more from the socket than a piece or two, until the one before is
 * taken.
 */
const HELD_OCTETS = 4 * 1024 * 1024;

/** Opens the body of a route that takes uploads. Throws 400 for another content type, 413 if its declared length is over the limit. */
export function openUpload(
  request: Request,
  types: readonly string[],
  reading: Omit<BodyReading, "runSteps">,
): { upload: Upload; fingerprint: Fingerprint } {
  const [type = ""] = (request.headers.get("content-type") ?? "").toLowerCase().split(";");
  if (!types.includes(type.trim()))
    throw new AppError("invalid_request", `The body needs Content-Type: ${types.join(" or ")}.`, {
      param: "Content-Type",
    });
  checkEncoding(request.headers);
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  if (declared > reading.maxBytes) throw tooLarge(reading.maxBytes);
  reading.reservation?.take(HELD_OCTETS);
  const hash = createHash("sha256");
  const pieces = piecesOf(request, declared, reading, (piece) => void hash.update(piece));
  const soFar = () => hash.copy().digest("hex");
  const whole = async () => {
    for await (const _ of pieces);
    return soFar();
  };
  return { upload: { type: type.trim(), pieces }, fingerprint: { soFar, whole } };
}

async function* piecesOf(
  { body }: Request,
  declared: number,
  { clock, maxBytes }: Omit<BodyReading, "runSteps">,
  seen: (piece: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  const { time, over } = timeOf(clock);
  let octets = 0;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), over]);
      if (done) break;
      octets += value.length;
      if (octets > maxBytes) throw tooLarge(maxBytes);
      time.add(value.length);
      seen(value);
      yield value;
    }
    if (octets < declared) throw brokenOff();
  } catch (error) {
    throw error instanceof AppError ? error : brokenOff();
  } finally {
    time.end();
    // Not awaited: the answer need not wait for the client to stop.
    reader.cancel().catch(() => undefined);
  }
}

function brokenOff(): AppError {
  return new AppError("invalid_request", "The body could not be read to its end.");
}
