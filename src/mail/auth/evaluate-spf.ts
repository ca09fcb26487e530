import { spf } from "mailauth/lib/spf";
import type { AuthResolver, MailauthResolver } from "./resolver.ts";

/** Maximum number of terms in one evaluation that need a DNS lookup (RFC 7208 §4.6.4). */
export const MAX_SPF_LOOKUPS = 10;
/** Maximum number of lookups without a result that an evaluation may have (RFC 7208 §4.6.4). */
export const MAX_VOID_SPF_LOOKUPS = 2;

/** The result that receivers get for mail from one client. */
export interface SpfEvaluation {
  /** As in RFC 7208 §2.6. */
  result: string;
  /** Why, in mailauth's words. */
  comment: string;
  lookups: number;
  voidLookups: number;
}

/**
 * Evaluates SPF for a message of the domain from that client, with the checker for incoming mail. Never throws.
 */
export async function evaluateSpf(
  resolve: AuthResolver,
  { ip, domain, helo }: { ip: string; domain: string; helo: string },
): Promise<SpfEvaluation> {
  try {
    const { status, lookups } = await spf({
      resolver: resolve as MailauthResolver,
      strict: true,
      ip,
      helo,
      mta: helo,
      sender: `postmaster@${domain}`,
      maxResolveCount: MAX_SPF_LOOKUPS,
      maxVoidCount: MAX_VOID_SPF_LOOKUPS,
    });
    const { count = 0, void: voids = 0 } = lookups ?? {};
    return { result: status.result, comment: status.comment ?? "", lookups: count, voidLookups: voids };
  } catch {
    return { result: "temperror", comment: "", lookups: 0, voidLookups: 0 };
  }
}
