import { isObject } from "../../core/validation.ts";
import { AcmeError, type Problem, readProblem } from "./problem.ts";
import type { AcmeAnswer } from "./signed-requests.ts";

/** Maximum number of authorizations in an order, one for each name. */
export const MAX_AUTHORIZATIONS = 100;
/** Maximum number of names of CAs in CAA records. */
const MAX_CAA_NAMES = 8;

/** The URLs of a CA (RFC 8555 §7.1.1). */
export interface Directory {
  newNonce: string;
  newAccount: string;
  newOrder: string;
  /** null: the CA does not tell when to renew. */
  renewalInfo: string | null;
  /** Names by which CAA records let this CA issue (RFC 8659 §4.2). */
  caaNames: readonly string[];
}

/** An order (RFC 8555 §7.1.3). */
export interface Order {
  url: string;
  status: "pending" | "ready" | "processing" | "valid" | "invalid";
  authorizations: readonly string[];
  finalize: string;
  certificate: string | null;
  problem: Problem | null;
  retryAfterMs: number | null;
}

/** The CA's check of one name (RFC 8555 §7.1.4). */
export interface Authorization {
  name: string;
  status: "pending" | "valid" | "invalid" | "deactivated" | "expired" | "revoked";
  /** The dns-01 challenge; null if the CA offers none. */
  challenge: Challenge | null;
  retryAfterMs: number | null;
}

export interface Challenge {
  url: string;
  token: string;
  status: "pending" | "processing" | "valid" | "invalid";
  problem: Problem | null;
}

/** The time in which a CA wants a certificate to be renewed, milliseconds (RFC 9773 §4.2). */
export interface RenewalWindow {
  start: number;
  end: number;
  retryAfterMs: number | null;
}

const ORDER_STATUSES = ["pending", "ready", "processing", "valid", "invalid"] as const;
const AUTHORIZATION_STATUSES = ["pending", "valid", "invalid", "deactivated", "expired", "revoked"] as const;
const CHALLENGE_STATUSES = ["pending", "processing", "valid", "invalid"] as const;
/** RFC 8555 §8.1: at least 128 bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{16,256}$/;

export function readDirectory(json: unknown): Directory {
  const found = object(json, "directory");
  const meta = isObject(found.meta) ? found.meta : {};
  const names = Array.isArray(meta.caaIdentities) ? meta.caaIdentities.slice(0, MAX_CAA_NAMES) : [];
  return {
    newNonce: text(found, "newNonce"),
    newAccount: text(found, "newAccount"),
    newOrder: text(found, "newOrder"),
    renewalInfo: typeof found.renewalInfo === "string" ? found.renewalInfo : null,
    caaNames: names.filter((name) => typeof name === "string" && /^[a-z0-9.-]{1,253}$/i.test(name)),
  };
}

export function readOrder(url: string, { json, retryAfterMs }: AcmeAnswer): Order {
  const found = object(json, "order");
  const { authorizations, certificate } = found;
  if (!Array.isArray(authorizations) || authorizations.length > MAX_AUTHORIZATIONS)
    throw wrongForm("authorizations");
  return {
    url,
    status: oneOf(found, "status", ORDER_STATUSES),
    authorizations: authorizations.map(String),
    finalize: text(found, "finalize"),
    certificate: typeof certificate === "string" ? certificate : null,
    problem: readProblem(found.error),
    retryAfterMs,
  };
}

export function readAuthorization({ json, retryAfterMs }: AcmeAnswer): Authorization {
  const found = object(json, "authorization");
  const challenges = Array.isArray(found.challenges) ? found.challenges : [];
  const dns = challenges.find((one) => isObject(one) && one.type === "dns-01");
  return {
    name: text(object(found.identifier, "identifier"), "value").toLowerCase(),
    status: oneOf(found, "status", AUTHORIZATION_STATUSES),
    challenge: isObject(dns) ? readChallenge(dns) : null,
    retryAfterMs,
  };
}

function readChallenge(found: Record<string, unknown>): Challenge {
  const token = text(found, "token");
  if (!TOKEN.test(token)) throw wrongForm("token");
  const status = oneOf(found, "status", CHALLENGE_STATUSES);
  return { url: text(found, "url"), token, status, problem: readProblem(found.error) };
}

export function readWindow({ json, retryAfterMs }: AcmeAnswer): RenewalWindow {
  const window = object(object(json, "renewalInfo").suggestedWindow, "suggestedWindow");
  const start = Date.parse(text(window, "start"));
  const end = Date.parse(text(window, "end"));
  // RFC 9773 §4.2: a window that ends before it starts is treated as none.
  if (!(start <= end)) throw wrongForm("suggestedWindow");
  return { start, end, retryAfterMs };
}

function object(value: unknown, name: string): Record<string, unknown> {
  if (!isObject(value)) throw wrongForm(name);
  return value;
}

function text(found: Record<string, unknown>, name: string): string {
  const value = found[name];
  if (typeof value !== "string" || value === "") throw wrongForm(name);
  return value;
}

function oneOf<Name extends string>(
  found: Record<string, unknown>,
  name: string,
  values: readonly Name[],
): Name {
  const value = values.find((one) => one === found[name]);
  if (value === undefined) throw wrongForm(name);
  return value;
}

function wrongForm(name: string): AcmeError {
  return new AcmeError(`the CA sent a wrong or missing "${name}"`);
}
