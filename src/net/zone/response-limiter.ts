import ipaddr from "ipaddr.js";
import type { Clock } from "../../core/time/clock.ts";
import type { AnswerKind } from "./answer.ts";

/** Decision about a UDP answer: `send` it, `slip` an empty one with TC set instead, or `drop` it. */
export type LimiterVerdict = "send" | "slip" | "drop";

/** Answers per second to one network. After a quiet second, twice as many may be sent at once. */
export const ANSWERS_PER_SECOND = {
  /** With records, to one question: a client that has the answer does not need it twice. */
  records: 20,
  /** No such name or record: all such answers together, because names can be invented. */
  none: 20,
  /** Refusals and errors, all together. */
  error: 10,
  /** All answers: enough for the resolvers of a whole company, and little for an attack. */
  all: 500,
} as const;

/**
 * Every second limited answer is sent empty with TC set. If the client's address is forged, it gets no more octets than
 * were sent in its name. A real client asks again by TCP, where addresses cannot be forged.
 */
const SLIP_EVERY = 2;

/**
 * Counters kept; those unused for longest are dropped. An attacker who forges more addresses gains one burst for each.
 */
const MAX_LIMITER_COUNTS = 50_000;

/** IPv6 customers have a /56. IPv4 neighbours in a /24 share a limit, because an attack on one loads the same line. */
const IPV6_PREFIX_OCTETS = 7;

interface Bucket {
  tokens: number;
  at: number;
  held: number;
}

export interface ResponseLimiter {
  /** Counts an answer to a client. Answers with records are counted per `question`. */
  take(network: string, kind: AnswerKind, question: string): LimiterVerdict;
  size(): number;
}

/** Returns the network that a client is counted by: an IPv4 /24 or an IPv6 /56. */
export function clientNetwork(address: string): string {
  const bare = address.split("%", 1)[0] ?? address;
  const ip = ipaddr.isValid(bare) ? ipaddr.process(bare) : null;
  if (ip === null) return address;
  const octets = ip.toByteArray();
  return octets.slice(0, octets.length === 4 ? 3 : IPV6_PREFIX_OCTETS).join(".");
}

/** Limits the response rate, to make reflection attacks with forged addresses pointless. */
export function createResponseLimiter(clock: Clock, maxCounts = MAX_LIMITER_COUNTS): ResponseLimiter {
  // Two generations: if the young map is full, it becomes the old one, and counters that are used again move over.
  // Unused ones are dropped together: deleting them one by one costs 100 µs each in JavaScriptCore.
  let young = new Map<string, Bucket>();
  let old = new Map<string, Bucket>();

  function found(key: string): Bucket | undefined {
    const bucket = young.get(key);
    if (bucket !== undefined) return bucket;
    const older = old.get(key);
    if (older !== undefined) keep(key, older);
    return older;
  }

  function keep(key: string, bucket: Bucket): Bucket {
    if (young.size >= maxCounts / 2) {
      old = young;
      young = new Map();
    }
    young.set(key, bucket);
    return bucket;
  }

  function bucketOf(key: string, perSecond: number): Bucket {
    const now = clock.elapsed();
    const bucket = found(key) ?? keep(key, { tokens: perSecond * 2, at: now, held: 0 });
    bucket.tokens = Math.min(perSecond * 2, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    return bucket;
  }

  return {
    take(network, kind, question) {
      const all = bucketOf(network, ANSWERS_PER_SECOND.all);
      const key = `${network} ${kind === "records" ? question : kind}`;
      const own = bucketOf(key, ANSWERS_PER_SECOND[kind]);
      if (all.tokens >= 1 && own.tokens >= 1) {
        all.tokens--;
        own.tokens--;
        return "send";
      }
      own.held++;
      // For an error, TCP would bring no other answer.
      return kind !== "error" && own.held % SLIP_EVERY === 0 ? "slip" : "drop";
    },
    size: () => young.size + old.size,
  };
}
