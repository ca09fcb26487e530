import ipaddr from "ipaddr.js";
import type { Clock } from "../../core/clock.ts";
import type { AnswerKind } from "./answer.ts";

/** What becomes of a UDP answer: it goes out, an empty one with TC set goes in its place, or none does. */
export type Passage = "send" | "slip" | "drop";

/** Answers a second to one network; as many again may come at once after a quiet second. */
export const ANSWERS_PER_SECOND = {
  /** With records, to one question: whoever has the answer needs it no second time. */
  records: 20,
  /** That a name or a record does not exist: all such answers together, since names can be made up. */
  none: 20,
  /** Refusals and errors, all together. */
  error: 10,
  /** All answers: about what a whole company's resolvers ask, and little for an attack. */
  all: 500,
} as const;

/**
 * Every second answer held back goes out empty with TC set: a client whose address is forged gets no more octets than
 * were sent in its name, and a real one asks again by TCP, where addresses cannot be forged.
 */
const SLIP_EVERY = 2;

/** Counts kept; those unused for longest go first. Forging more addresses than that gains one burst for each. */
const MAX_LIMITER_COUNTS = 50_000;

/** IPv6 customers hold a /56, IPv4 ones an address: neighbours of a /24 share a limit, as an attack on their line would. */
const IPV6_PREFIX_OCTETS = 7;

interface Bucket {
  tokens: number;
  at: number;
  held: number;
}

export interface ResponseLimiter {
  /** Counts an answer to a client. `question` tells answers with records apart. */
  take(network: string, kind: AnswerKind, question: string): Passage;
  size(): number;
}

/** The network that a client's answers are counted by: an IPv4 /24 or an IPv6 /56. */
export function clientNetwork(address: string): string {
  const bare = address.split("%", 1)[0] ?? address;
  const ip = ipaddr.isValid(bare) ? ipaddr.process(bare) : null;
  if (ip === null) return address;
  const octets = ip.toByteArray();
  return octets.slice(0, octets.length === 4 ? 3 : IPV6_PREFIX_OCTETS).join(".");
}

/** Response rate limiting: what reflection attacks by forged source addresses are kept small by. */
export function createResponseLimiter(clock: Clock, maxCounts = MAX_LIMITER_COUNTS): ResponseLimiter {
  // Two generations: a full young one becomes the old one, and what is used again moves over. Counts unused for that
  // long are forgotten at once; to take them out of one map singly costs JavaScriptCore 100 µs each.
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
    const now = clock.now();
    const bucket = found(key) ?? keep(key, { tokens: perSecond * 2, at: now, held: 0 });
    // A clock put back must not take tokens away.
    const elapsed = Math.max(0, now - bucket.at) / 1000;
    bucket.tokens = Math.min(perSecond * 2, bucket.tokens + elapsed * perSecond);
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
      // An error has no answer that TCP would bring.
      return kind !== "error" && own.held % SLIP_EVERY === 0 ? "slip" : "drop";
    },
    size: () => young.size + old.size,
  };
}
