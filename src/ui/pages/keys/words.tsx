import type { ApiKey } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { me } from "../../state/session.ts";

/** Scopes that a row names before it counts the rest. */
const NAMED_SCOPES = 2;

/** Returns the scopes of a key in a few words. */
export function scopesText(scopes: readonly string[]): string {
  if (scopes.length === 0) return "Everything";
  const rest = scopes.length - NAMED_SCOPES;
  return scopes.slice(0, NAMED_SCOPES).join(", ") + (rest > 0 ? ` +${rest}` : "");
}

/** Returns the project of a key in words. */
export function projectText({ senderId, senderExternalId }: ApiKey): string {
  return senderId === null ? "All projects" : (senderExternalId ?? senderId);
}

/** The state of a key as a dot with its word. */
export function KeyStatus({ apiKey: { id, revokedAt } }: { apiKey: ApiKey }) {
  if (revokedAt !== null) return <Dot tone="quiet" word="Revoked" />;
  return <Dot tone="good" word={id === me.value?.key.id ? "This session" : "Active"} />;
}
