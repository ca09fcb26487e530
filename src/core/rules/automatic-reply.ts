/** The fields that tell whether a program may answer a message, in lower case. */
export const REPLY_FIELDS = [
  "auto-submitted",
  "precedence",
  "list-id",
  "list-unsubscribe",
  "x-auto-response-suppress",
] as const;

/**
 * Returns whether a program may answer a message (RFC 3834 §2): it has a return path, and is neither automatic nor sent to many.
 * Its author must be proven, so that a forged From brings no answers to a stranger.
 * @param headers by name in lower case
 */
export function mayBeAnswered({
  headers,
  authenticated,
  mailFrom,
}: {
  headers: Readonly<Record<string, string>>;
  authenticated: boolean;
  mailFrom: string;
}): boolean {
  const automatic = headers["auto-submitted"]?.trim().toLowerCase() ?? "no";
  const isBulk = /^\s*(?:bulk|list|junk|auto_reply)\b/i.test(headers.precedence ?? "");
  const isMarked = ["list-id", "list-unsubscribe", "x-auto-response-suppress"].some(
    (name) => headers[name] !== undefined,
  );
  return authenticated && mailFrom !== "" && automatic === "no" && !isBulk && !isMarked;
}
