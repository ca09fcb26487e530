import type { Key } from "../../core/crypto/key-ring.ts";
import { createHash } from "node:crypto";
import { AppError } from "../../core/errors.ts";
import { seal, unseal } from "../../core/crypto/secretbox.ts";
import { IDEMPOTENCY_KEY } from "../../core/idempotency-key.ts";
import { type FreeSpace, lowDisk } from "../../flows/free-space.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import {
  findAnswer,
  IDEMPOTENCY_WINDOW_MS,
  type IdempotencyKey,
  insertAnswer,
  type StoredAnswer,
} from "../../store/projects/idempotency.ts";
import { isBroken } from "../../store/engine/guards.ts";
import type { Answer } from "../routing/answer.ts";

const IDEMPOTENCY_HEADER = "Idempotency-Key";
const REPLAYED_HEADER = "Idempotent-Replayed";

/**
 * Longest answer that is stored if its request wrote nothing itself, characters. Such a request (rendering a
 * template) may run again instead. Without a limit, small requests with large answers could fill the disk.
 */
const MAX_UNRECORDED_CHARS = 256 * 1024;

/**
 * Longest such answer that is stored even if the disk is low, for example of a cancellation, which must stay
 * possible.
 */
const MAX_SMALL_CHARS = 4096;

const SHA256_HEX_CHARS = 64;

/** Keys whose first request is still running in this process. Between processes, the primary key decides. */
export type InFlight = Set<string>;

export interface IdempotencyDeps {
  db: Db;
  /** Encrypts stored answers that contain a secret. */
  boxKey: Key;
  inFlight: InFlight;
  space: FreeSpace;
}

/** The fingerprint of a body: of its JSON value, or of the octets of an upload. */
export interface Fingerprint {
  /** Of what was read so far. A handler has read all of it when it records its answer. */
  soFar(): string;
  /** Reads what is left of an upload. */
  whole(): Promise<string>;
}

/** One POST with an Idempotency-Key. */
export interface IdempotentRequest {
  at: IdempotencyKey;
  body: Fingerprint;
  /**
   * Set if the answer contains a secret: the id of the key that made the request. The answer is stored encrypted and
   * only that key gets it again, because another key may have fewer rights.
   */
  secretFor: string | null;
  now: number;
  /** Statements that make the write of an answer fail if it exceeds the project's stored octets. */
  within: readonly Statement[];
}

/** Runs the request itself. `record` returns the statements that store its answer in the same write. */
export type Run = (record: (answer: Answer) => Statement[]) => Promise<Answer>;

/**
 * Returns the request's Idempotency-Key, or null if it has none. Throws 400 if it is empty, too long or not
 * printable.
 */
export function readIdempotencyKey(headers: Headers): string | null {
  const key = headers.get(IDEMPOTENCY_HEADER);
  if (key === null || IDEMPOTENCY_KEY.test(key)) return key;
  throw new AppError("invalid_request", `${IDEMPOTENCY_HEADER} must be 1 to 256 printable characters.`, {
    param: IDEMPOTENCY_HEADER,
  });
}

/**
 * Runs a request once for its key. If it is repeated within 24 hours, returns the stored answer. Only 2xx answers are
 * stored, because a refused request has no effect.
 * @throws AppError 409 `idempotency_mismatch` if the body differs or the key may not get the answer;
 * `idempotency_in_flight` while the first request runs
 */
export async function runOnce(deps: IdempotencyDeps, request: IdempotentRequest, run: Run): Promise<Answer> {
  const { scope, endpoint, key } = request.at;
  const flight = JSON.stringify([scope, endpoint, key]);
  if (deps.inFlight.has(flight))
    throw new AppError("conflict", "The first request with this Idempotency-Key is still running.", {
      code: "idempotency_in_flight",
      retryAfterSeconds: 1,
    });
  deps.inFlight.add(flight);
  try {
    return await runAlone(deps, request, run);
  } finally {
    deps.inFlight.delete(flight);
  }
}

async function runAlone(deps: IdempotencyDeps, request: IdempotentRequest, run: Run): Promise<Answer> {
  const replayed = await replay(deps, request);
  if (replayed !== null) return replayed;
  let recorded = false;
  const statements = (answer: Answer, text = textOf(answer)): Statement[] => [
    insertAnswer(request.at, stored(deps, request, { status: answer.status, text })),
  ];
  try {
    const answer = await run((own) => {
      recorded = true;
      return statements(own);
    });
    if (!recorded && answer.later === undefined && answer.status >= 200 && answer.status < 300) {
      const text = textOf(answer);
      if (text.length > MAX_SMALL_CHARS && deps.space.low()) throw lowDisk();
      if (text.length <= MAX_UNRECORDED_CHARS)
        await deps.db.write([...statements(answer, text), ...request.within]);
    }
    return answer;
  } catch (error) {
    // Another process took the key first. This write was undone with its record, or it was refused because of what
    // the first request had made (a duplicate) or used (the day's volume).
    if (!isBroken(error, "key_answered") && !(error instanceof AppError)) throw error;
    const won = await replay(deps, request);
    if (won === null) throw error;
    return won;
  }
}

function textOf({ body }: Answer): string {
  return body === undefined ? "" : JSON.stringify(body);
}

/**
 * Returns what identifies a request. If the answer contains a secret, it is a hash of the body and the key that
 * asked. The hash of the body alone follows, so that another body can be told from another key.
 */
function hashOf({ secretFor }: IdempotentRequest, bodyHash: string): string {
  return secretFor === null ? bodyHash : sha256(`${secretFor}\n${bodyHash}`) + bodyHash;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function stored(
  deps: IdempotencyDeps,
  request: IdempotentRequest,
  { status, text }: { status: number; text: string },
): StoredAnswer {
  const bodyHash = hashOf(request, request.body.soFar());
  const body = request.secretFor !== null ? seal(deps.boxKey, text) : text;
  return { bodyHash, status, body, createdAt: request.now };
}

/**
 * Returns the stored answer, or null if there is none within the window. Throws 409 if it belongs to another request.
 */
async function replay(deps: IdempotencyDeps, request: IdempotentRequest): Promise<Answer | null> {
  const found = await findAnswer(deps.db, request.at);
  if (found === null || found.createdAt <= request.now - IDEMPOTENCY_WINDOW_MS) return null;
  const bodyHash = hashOf(request, await request.body.whole());
  if (found.bodyHash !== bodyHash) throw mismatch(found.bodyHash, bodyHash);
  const text = request.secretFor !== null ? unseal(deps.boxKey, found.body) : found.body;
  return {
    status: found.status,
    body: text === "" ? undefined : JSON.parse(text),
    headers: { [REPLAYED_HEADER]: "true" },
  };
}

function mismatch(found: string, asked: string): AppError {
  const bodyAlone = found.slice(SHA256_HEX_CHARS);
  const message =
    bodyAlone !== "" && bodyAlone === asked.slice(SHA256_HEX_CHARS)
      ? "This Idempotency-Key was used by another API key, and the answer holds a secret that only that one gets again."
      : "This Idempotency-Key was used with another body.";
  return new AppError("conflict", message, { code: "idempotency_mismatch" });
}
