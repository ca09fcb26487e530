import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS, SECOND_MS } from "../../core/time/units.ts";
import type { Resolver } from "../dns/resolver.ts";
import { requestGuarded } from "../guarded-request.ts";
import type { HttpResponse } from "../http-response.ts";
import { httpDate, parseRetryAfter } from "../post.ts";
import { type AccountKey, signRequest } from "./jws.ts";
import { AcmeError, readProblem, unreachable } from "./problem.ts";

/** Time for one request. Every step of an order is one to four of them. */
export const REQUEST_TIMEOUT_MS = 20_000;
/** Maximum octets of an answer. The largest is a chain of certificates. */
export const MAX_ANSWER_OCTETS = 64 * 1024;
/**
 * Maximum number of times that a request is signed again because the CA did not know its nonce (RFC 8555 §6.5).
 */
export const MAX_NONCE_TRIES = 5;
/** Longest pause that a CA may ask for. Limits of a week are the longest in use. */
export const MAX_PAUSE_MS = 7 * DAY_MS;

const CREATED_OR_OK = [200, 201, 204];

export interface TransportDeps {
  clock: Clock;
  resolver: Resolver;
  /** PEM of the authorities of a private directory. If undefined, the built-in ones. */
  ca?: string | undefined;
}

/** An answer of the CA that is no error. */
export interface AcmeAnswer {
  text: string;
  /** The JSON of the answer; null if it is none. */
  json: unknown;
  location: string | null;
  /** Milliseconds after which to ask again; null if the CA does not say. */
  retryAfterMs: number | null;
}

/** The requests of one process to one CA. */
export interface Transport {
  get(url: string): Promise<AcmeAnswer>;
  /** Sends a signed request; a payload of null is a signed GET. */
  post(account: AccountKey, url: string, payload: object | null): Promise<AcmeAnswer>;
  /** Returns the milliseconds by which our clock is ahead of the CA's; null if its last answer named no time. */
  clockAhead(): number | null;
}

/**
 * Opens the way to a CA. Both functions throw AcmeError.
 * @param newNonceUrl returns the URL that gives nonces
 */
export function createTransport(deps: TransportDeps, newNonceUrl: () => Promise<string>): Transport {
  let nonce: string | null = null;
  /** The time that the last answer named, and the moment when it came. */
  let heard: { date: number; at: number } | null = null;

  async function send(url: string, body: string | null): Promise<HttpResponse> {
    const response = await exchange(deps, url, body);
    nonce = response.headers.get("replay-nonce") ?? nonce;
    const date = httpDate(response.headers.get("date") ?? "");
    heard = Number.isNaN(date) ? null : { date, at: deps.clock.elapsed() };
    return response;
  }

  /** Takes the nonce of the last answer, or asks for one. Each serves once. */
  async function takeNonce(): Promise<string> {
    if (nonce === null) await send(await newNonceUrl(), null);
    const taken = nonce;
    nonce = null;
    if (taken === null) throw new AcmeError("the CA gives no nonce");
    return taken;
  }

  return {
    clockAhead: () =>
      heard === null ? null : deps.clock.now() - heard.date - (deps.clock.elapsed() - heard.at),
    async get(url) {
      return readAnswer(deps, await send(url, null));
    },
    async post(account, url, payload) {
      for (let tries = 1; ; tries++) {
        const response = await send(url, signRequest(account, url, await takeNonce(), payload));
        try {
          return readAnswer(deps, response);
        } catch (error) {
          if (!(error instanceof AcmeError) || error.type !== "badNonce") throw error;
          // The CA forgot the nonce, which is no refusal of the request.
          if (tries === MAX_NONCE_TRIES) throw new AcmeError("the CA takes none of its own nonces");
        }
      }
    },
  };
}

async function exchange(deps: TransportDeps, url: string, body: string | null): Promise<HttpResponse> {
  // RFC 8555 §6.1. The directory names the other URLs, and a private directory may have a private address.
  if (!/^https:/i.test(url)) throw new AcmeError("the CA names a URL without https");
  const outcome = await requestGuarded(
    { ...deps, mayReach: () => true },
    {
      url,
      headers: {
        "User-Agent": "postrider",
        Accept: "*/*",
        ...(body === null ? {} : { "Content-Type": "application/jose+json" }),
      },
      body: body === null ? null : [Buffer.from(body)],
      // One more than the most, so that a longer answer is noticed.
      maxBodyOctets: MAX_ANSWER_OCTETS + 1,
      timeoutMs: REQUEST_TIMEOUT_MS,
      allowPrivate: true,
    },
  );
  const { host } = URL.canParse(url) ? new URL(url) : { host: "the CA" };
  if (outcome.kind === "failed") throw unreachable(host, outcome.reason);
  if (!outcome.whole || outcome.response.body.length > MAX_ANSWER_OCTETS)
    throw new AcmeError(`${host} sent an answer that is cut short or too long`);
  return outcome.response;
}

function readAnswer({ clock }: TransportDeps, { status, headers, body }: HttpResponse): AcmeAnswer {
  const text = body.toString("utf8");
  const json = parsed(text);
  const seconds = parseRetryAfter(headers.get("retry-after"), clock.now(), MAX_PAUSE_MS / SECOND_MS);
  const retryAfterMs = seconds === null ? null : seconds * SECOND_MS;
  if (CREATED_OR_OK.includes(status))
    return { text, json, location: headers.get("location") ?? null, retryAfterMs };
  const problem = readProblem(json);
  throw new AcmeError(problem?.text ?? `the CA answered with status ${status}`, {
    type: problem?.type ?? null,
    // RFC 8555 §6.6: a rate limit is 429 or 403. A status of 5xx is trouble of the CA.
    refused: problem !== null && status >= 400 && status <= 499 && problem.type !== "serverInternal",
    retryAfterMs,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
