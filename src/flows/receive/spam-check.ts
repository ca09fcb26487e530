import { randomBytes } from "node:crypto";
import { readSpam, type Spam } from "../../core/messages/spam.ts";
import { log } from "../../log.ts";
import { type GuardedDeps, requestGuarded } from "../../net/guarded-request.ts";
import type { Envelope } from "../../smtp/session/envelope.ts";

/** Largest message that the filter gets, octets. A larger one has no verdict: filters skip it as well. */
export const MAX_SPAM_CHECK_OCTETS = 10 * 1024 * 1024;
/** Maximum octets read of an answer. A longer one is no verdict. */
export const MAX_SPAM_ANSWER_OCTETS = 256 * 1024;

/** The filter that the operator runs. */
export interface SpamFilter {
  /** URL of its worker; `/checkv2` is appended. */
  url: string;
  timeoutMs: number;
}

/** A verdict; null if the message has none; `failed` if the filter did not give one in time. */
export type SpamAnswer = Spam | null | "failed";
export type CheckSpam = (envelope: Envelope, raw: Uint8Array) => Promise<SpamAnswer>;

/**
 * Asks a filter that speaks rspamd's HTTP protocol. The operator chose its URL, so it may be at a private address. Never throws.
 */
export function spamCheck(deps: Pick<GuardedDeps, "clock" | "resolver">, filter: SpamFilter): CheckSpam {
  const asking = { ...deps, mayReach: () => true };
  return async (envelope, raw) => {
    if (raw.length > MAX_SPAM_CHECK_OCTETS) return null;
    const queueId = randomBytes(8).toString("hex");
    const outcome = await requestGuarded(asking, {
      url: `${filter.url}/checkv2`,
      headers: headersOf(envelope, queueId),
      body: [raw],
      maxBodyOctets: MAX_SPAM_ANSWER_OCTETS,
      timeoutMs: filter.timeoutMs,
      allowPrivate: true,
    });
    const spam = outcome.kind === "answered" && outcome.whole ? readSpam(outcome.response.body) : null;
    if (spam !== null) return spam;
    const reason = outcome.kind === "failed" ? outcome.reason : `HTTP ${outcome.response.status}`;
    log("smtp").warn("the spam filter gave no verdict", { reason, queueId });
    return "failed";
  };
}

/** Returns the header fields of rspamd's protocol. */
function headersOf(
  { ip, helo, mailFrom, rcptTo, tls }: Envelope,
  queueId: string,
): Record<string, string | readonly string[]> {
  return {
    IP: ip,
    Helo: inOctets(helo),
    From: inOctets(mailFrom),
    Rcpt: rcptTo.map(inOctets),
    "Queue-Id": queueId,
    ...(tls === null ? {} : { "TLS-Version": tls }),
  };
}

/** Returns a string in which each character stands for an octet of its UTF-8, as HTTP header fields are sent. */
function inOctets(text: string): string {
  return Buffer.from(text).toString("latin1");
}
