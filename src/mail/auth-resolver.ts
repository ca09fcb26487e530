import { isWithin } from "../core/addresses.ts";

/** DNS lookups for one mail, all checks together; SPF bounds its own to 10 and their addresses (RFC 7208 §4.6.4). */
export const MAX_AUTH_LOOKUPS = 200;

/**
 * Asks DNS as node's `dns.promises.resolve` does: TXT as arrays of strings, rejects with the codes ENOTFOUND, ENODATA,
 * ESERVFAIL, ETIMEOUT.
 */
export type AuthResolver = (name: string, type: string) => Promise<unknown[]>;

/** mailauth's types want strings only; it takes MX records as node gives them. */
export type MailauthResolver = (name: string, type: string) => Promise<string[]>;

/** When lookups for one mail end. */
export interface LookupEnds {
  /** All of them but those of the author's domain. */
  signal: AbortSignal;
  /** Those as well. */
  last: AbortSignal;
  /** The author's organizational domain; null where the mail shows none. */
  author: string | null;
}

/**
 * The resolver given, for one mail: within the limit of lookups, and until its end, for a slow name server is to hold
 * nothing up. What was answered before stays known. The author's policy and keys are asked for on for a while: a forger's
 * own slow servers are not to keep us from learning what the author wants, and that he has no such key.
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

/** Whether it is a name of the author's, or one above it at which a policy may stand (RFC 9989 §4.10). */
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
