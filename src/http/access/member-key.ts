import { UNBOUND } from "../../core/key-bounds.ts";
import type { PresentedKey } from "../../store/projects/keys.ts";
import type { PresentedSession } from "../../store/projects/member-sessions.ts";
import { scopesOf } from "../routing/roles.ts";

/**
 * Returns a key with the rights of a member's session, so that all rights are those of keys. A member who is limited to
 * projects acts as a key of the one that the request names, or else of the first.
 * @param name id or external id of a project; null if the request names none
 */
export function memberKey({ session, member, senders }: PresentedSession, name: string | null): PresentedKey {
  const [first = null] = member.senderIds;
  const named = senders.find(({ id, externalId }) => id === name || externalId === name);
  const sender = first === null ? null : (named ?? senders[0] ?? null);
  const { id, accountId, email, role, createdAt } = member;
  return {
    key: {
      ...UNBOUND,
      id,
      accountId,
      name: email,
      keyPrefix: "",
      last4: "",
      // If the member's projects are gone, the member must not count as one without limits.
      senderId: sender?.id ?? first,
      senderExternalId: sender?.externalId ?? null,
      scopes: [...scopesOf(role)],
      lastUsedAt: session.lastUsedAt,
      revokedAt: null,
      createdAt,
      createdBy: null,
      createdByName: null,
    },
    secretHash: "",
    sender,
    session: { id: session.id, grant: grantOf(session.id, member) },
  };
}

/** Returns what a long request holds on to: it ends with the session, and if the member's role or projects change. */
function grantOf(sessionId: string, { role, senderIds }: PresentedSession["member"]): string {
  return `${sessionId} ${role} ${JSON.stringify(senderIds)}`;
}
