import { isWithin } from "../../core/addresses.ts";

/** DNS lookups for one mail by all checks together. SPF bounds its own to 10 and their addresses (RFC 7208 §4.6.4). */
export const MAX_AUTH_LOOKUPS = 200;

/**
 * Asks DNS as node's `dns.promises.resolve` does. TXT records are arrays of strings; it rejects with the codes ENOTFOUND, ENODATA,
 * ESERVFAIL and ETIMEOUT.
 */
export type AuthResolver = (name: string, type: string) => Promise<unknown[]>;

/** A resolver for mailauth. Its types want strings only, but it takes MX records as node gives them. */
export type MailauthResolver = (name: string, type: string) => Promise<string[]>;

/** The moments at which lookups for one mail end. */
export interface LookupEnds {
  /** Ends all lookups but those of the author's domain. */
  signal: AbortSignal;
  /** Ends those as well. */
  last: AbortSignal;
  /** The author's organizational domain; null if the mail shows none. */
  author: string | null;
}

/**
 * Wraps the resolver for one message: caps lookups and gives each a deadline. Answers are reused. Lookups of the
 * author's policy and keys end later: a forger's slow name servers must not hide the policy, or that the author has
 * no such key.
 */
export function boundedResolver(
  resolve: AuthResolver,
  { signal, last, author }: LookupEnds,
): MailauthResolver {
  const asked = new Map<string, Promise<unknown[]>>();
  const [ended, atLast] = [endOf(signal), endOf(last)];
  const ask = (name: string, type: string): Promise<unknown[]> => {
    if (asked.size >= MAX_AUTH_LOOKUPS)
      return Promise.reject(dnsError("ESERVFAIL", "too many lookups for one mail"));
    const end = author !== null && isOfAuthor(name, author) ? atLast : ended;
    return Promise.race([end, resolve(name, type)]);
  };
  return async (text, type) => {
    const name = text.toLowerCase();
    const key = `${type} ${name}`;
    const answer = asked.get(key) ?? ask(name, type);
    if (asked.size < MAX_AUTH_LOOKUPS) asked.set(key, answer);
    return (await answer) as string[];
  };
}

/** Returns true for a name of the author's, and for one above it that may have a policy (RFC 9989 §4.10). */
function isOfAuthor(name: string, author: string): boolean {
  return (
    isWithin(name, author) || (name.startsWith("_dmarc.") && isWithin(author, name.slice("_dmarc.".length)))
  );
}

function endOf(signal: AbortSignal): Promise<never> {
  const ended = new Promise<never>((_, reject) => {
    const end = (): void => reject(dnsError("ETIMEOUT", "out of time"));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
  ended.catch(() => undefined);
  return ended;
}

function dnsError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
