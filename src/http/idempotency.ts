import { createHash } from "node:crypto";
import { AppError } from "../core/errors.ts";
import { seal, unseal } from "../core/secretbox.ts";
import type { Db, Statement } from "../store/engine/client.ts";
import {
  findAnswer,
  IDEMPOTENCY_WINDOW_MS,
  type IdempotencyKey,
  insertAnswer,
  isAnswered,
  type StoredAnswer,
} from "../store/idempotency.ts";
import type { Answer } from "./answer.ts";

const IDEMPOTENCY_HEADER = "Idempotency-Key";
const REPLAYED_HEADER = "Idempotent-Replayed";

/** 1–256 printable characters. */
const KEY = /^[\x20-\x7e]{1,256}$/;

/**
 * Characters of an answer that is stored though its request had no write of its own to store it with. Such a request
 * (a template rendered) may be run again instead: a small one with a large answer must not fill the disk.
 */
const MAX_UNRECORDED_CHARS = 256 * 1024;

const SHA256_HEX_CHARS = 64;

/** Keys whose first request is still running in this process. Between processes the primary key decides. */
export type InFlight = Set<string>;

export interface IdempotencyDeps {
  db: Db;
  /** Seals stored answers that hold a secret. */
  boxKey: Uint8Array;
  inFlight: InFlight;
}

/** One POST with an Idempotency-Key. */
export interface IdempotentRequest {
  at: IdempotencyKey;
  body: Uint8Array;
  /**
   * Set where the answer holds a secret: the key that asked. The answer is stored sealed, and only that key gets it
   * again: a key with fewer rights must not be handed what another one made.
   */
  secretFor: string | null;
  now: number;
}

/** Runs the request proper; `record` gives the statements that store its answer within its own write. */
export type Run = (record: (answer: Answer) => Statement[]) => Promise<Answer>;

/** The request's Idempotency-Key; null where it has none. Throws 400 for one that is empty, too long or not printable. */
export function readIdempotencyKey(headers: Headers): string | null {
  const key = headers.get(IDEMPOTENCY_HEADER);
  if (key === null || KEY.test(key)) return key;
  throw new AppError("invalid_request", `${IDEMPOTENCY_HEADER} must be 1 to 256 printable characters.`, {
    param: IDEMPOTENCY_HEADER,
  });
}

/**
 * Runs a request once for its key: the same again within 24 hours gets the stored answer. Only 2xx answers are stored,
 * since a refused request had no effect.
 * @throws AppError 409 `idempotency_mismatch` for another body, or from a key that must not have the answer;
 *   `idempotency_in_flight` while the first one runs
 */
export async function runOnce(deps: IdempotencyDeps, request: IdempotentRequest, run: Run): Promise<Answer> {
  const { scope, endpoint, key } = request.at;
  const flight = JSON.stringify([scope, endpoint, key]);
  if (deps.inFlight.has(flight))
    throw new AppError("conflict", "The first request with this Idempotency-Key is still running.", {
      code: "idempotency_in_flight",
      retryAfter: 1,
    });
  deps.inFlight.add(flight);
  try {
    return await runAlone(deps, request, run);
  } finally {
    deps.inFlight.delete(flight);
  }
}

async function runAlone(deps: IdempotencyDeps, request: IdempotentRequest, run: Run): Promise<Answer> {
  const bodyHash = hashOf(request);
  const replayed = await replay(deps, request, bodyHash);
  if (replayed !== null) return replayed;
  let recorded = false;
  const statements = (answer: Answer, text = textOf(answer)): Statement[] => [
    insertAnswer(request.at, stored(deps, request, { bodyHash, status: answer.status, text })),
  ];
  try {
    const answer = await run((own) => {
      recorded = true;
      return statements(own);
    });
    if (!recorded && answer.status >= 200 && answer.status < 300) {
      const text = textOf(answer);
      if (text.length <= MAX_UNRECORDED_CHARS) await deps.db.write(statements(answer, text));
    }
    return answer;
  } catch (error) {
    // Another process took the key first: this request's own write was undone with the record, or it was refused for what
    // the first one had made (a duplicate) or spent (the day's volume).
    if (!isAnswered(error) && !(error instanceof AppError)) throw error;
    const won = await replay(deps, request, bodyHash);
    if (won === null) throw error;
    return won;
  }
}

function textOf({ body }: Answer): string {
  return body === undefined ? "" : JSON.stringify(body);
}

/**
 * What tells whether a request is the one that was answered. Where the answer holds a secret, that is the hash of the body
 * with the key that asked, and behind it that of the body alone, which tells another body from another key.
 */
function hashOf({ body, secretFor }: IdempotentRequest): string {
  const ofBody = sha256(body);
  return secretFor === null ? ofBody : sha256(`${secretFor}\n`, body) + ofBody;
}

function sha256(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

function stored(
  deps: IdempotencyDeps,
  request: IdempotentRequest,
  { bodyHash, status, text }: { bodyHash: string; status: number; text: string },
): StoredAnswer {
  const body = request.secretFor !== null ? seal(deps.boxKey, text) : text;
  return { bodyHash, status, body, createdAt: request.now };
}

/** The answer stored for the request; null where there is none within the window. Throws 409 where it is another's. */
async function replay(
  deps: IdempotencyDeps,
  request: IdempotentRequest,
  bodyHash: string,
): Promise<Answer | null> {
  const found = await findAnswer(deps.db, request.at);
  if (found === null || found.createdAt <= request.now - IDEMPOTENCY_WINDOW_MS) return null;
  // Earlier releases kept no hash of the body alone.
  if (!bodyHash.startsWith(found.bodyHash)) throw mismatch(found.bodyHash, bodyHash);
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
