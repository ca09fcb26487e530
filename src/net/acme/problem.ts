import { isObject } from "../../core/validation.ts";
import { firstChars } from "../../core/text.ts";

/** Maximum characters kept of a message from the CA. */
const MAX_DETAIL_CHARS = 300;
/** Maximum number of an order's names whose problems are in the message. */
const MAX_SUBPROBLEMS = 3;
const PREFIX = "urn:ietf:params:acme:error:";

/** An error of the CA, or of the way to it. */
export class AcmeError extends Error {
  /** The error type of RFC 8555 §6.7 without its prefix, such as `rateLimited`; null if there was no answer in that form. */
  readonly type: string | null;
  /** The CA has refused, so the same request would be refused again. Else the CA or the way to it has trouble. */
  readonly refused: boolean;
  /** Milliseconds after which the CA wants to be asked again; null if it does not say. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    facts: { type?: string | null; refused?: boolean; retryAfterMs?: number | null } = {},
  ) {
    super(message);
    this.name = "AcmeError";
    this.type = facts.type ?? null;
    this.refused = facts.refused ?? false;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }
}

const UNREACHED = /^\S+ cannot be reached: /;

/** Returns the error of a CA to which there is no way. */
export function unreachable(host: string, reason: string): AcmeError {
  return new AcmeError(`${host} cannot be reached: ${reason}`);
}

/** Returns true if the stored text of an error says that the CA was not reached, so that it has said nothing of our names. */
export function isUnreachable(text: string): boolean {
  return UNREACHED.test(text);
}

/** A problem document (RFC 7807, RFC 8555 §6.7) as we use it. */
export interface Problem {
  type: string | null;
  text: string;
}

/**
 * Reads a problem document. Its strings come from outside, so they are shortened and lose control characters.
 */
export function readProblem(json: unknown): Problem | null {
  if (!isObject(json) || typeof json.type !== "string") return null;
  const type = json.type.startsWith(PREFIX) ? json.type.slice(PREFIX.length) : null;
  const parts = Array.isArray(json.subproblems) ? json.subproblems.slice(0, MAX_SUBPROBLEMS) : [];
  const texts = parts.flatMap((part: unknown) => {
    const inner = readProblem(part);
    if (inner === null || !isObject(part)) return [];
    const name = isObject(part.identifier) ? printable(part.identifier.value) : "";
    return [`${name}: ${inner.text}`];
  });
  const kind = printable(type ?? json.type);
  const detail = printable(json.detail);
  return { type, text: [detail === "" ? kind : `${kind}: ${detail}`, ...texts].join("; ") };
}

function printable(text: unknown): string {
  if (typeof text !== "string") return "";
  return firstChars(text.replace(/\p{Cc}+/gu, " ").trim(), MAX_DETAIL_CHARS);
}
