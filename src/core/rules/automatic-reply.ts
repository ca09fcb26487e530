import type { RuleMail } from "./rule.ts";

/** The fields that tell whether a program may answer a message, in lower case. */
export const REPLY_FIELDS = [
  "auto-submitted",
  "precedence",
  "list-id",
  "list-unsubscribe",
  "x-auto-response-suppress",
] as const;

/** Why no program answers a message: a program wrote it or it asks for no answer, it was sent to many, or its author is not proven. */
export const NOT_ANSWERED = ["automatic", "bulk", "unauthenticated"] as const;
export type NotAnswered = (typeof NOT_ANSWERED)[number];

/**
 * Returns why a program must not answer a message (RFC 3834 §2); null if it may. The null reverse path is that of programs.
 * Its author must be proven, so that a forged From brings no answers to a stranger.
 */
export function whyNotAnswered({
  headers,
  authenticated,
  mailFrom,
}: Pick<RuleMail, "headers" | "authenticated" | "mailFrom">): NotAnswered | null {
  const automatic = headers["auto-submitted"]?.trim().toLowerCase() ?? "no";
  if (mailFrom === "" || automatic !== "no" || headers["x-auto-response-suppress"] !== undefined)
    return "automatic";
  const isBulk = /^\s*(?:bulk|list|junk|auto_reply)\b/i.test(headers.precedence ?? "");
  if (isBulk || headers["list-id"] !== undefined || headers["list-unsubscribe"] !== undefined) return "bulk";
  return authenticated ? null : "unauthenticated";
}
