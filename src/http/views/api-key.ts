import { Type } from "@sinclair/typebox";
import { MAX_ALLOWED_RECIPIENTS, MAX_KEY_INBOXES } from "../../core/key-bounds.ts";
import type { ApiKey } from "../../store/projects/keys.ts";
import type { Principal } from "../routing/route.ts";
import { MAX_ID_CHARS, Name, Nullable, OneOf, ShownOneOf, showTime, Timestamp } from "../routing/schemas.ts";
import { SCOPES } from "../routing/scopes.ts";

const KEY_FIELDS = {
  id: Type.String(),
  name: Type.String(),
  keyPrefix: Type.String({ description: "The start of the key, which is not secret." }),
  last4: Type.String(),
  senderId: Nullable(Type.String()),
  senderExternalId: Type.Optional(Type.String({ description: "Present on a project-scoped key." })),
  scopes: Type.Array(ShownOneOf(SCOPES), { description: "Empty: every scope.", examples: [["emails:send"]] }),
  allowRecipients: Nullable(
    Type.Array(Type.String(), {
      description: "The addresses and domains that the key may send to. Null: all.",
      examples: [["ana@example.com", "@example.org"]],
    }),
  ),
  approval: Type.Boolean({ description: "Whether each send waits until another key approves it." }),
  inboxIds: Nullable(
    Type.Array(Type.String(), {
      description:
        "The only inboxes whose mail the key reads and answers; it does nothing else. Null: no such limit.",
      examples: [["inb_01hzy8"]],
    }),
  ),
  lastUsedAt: Nullable(Timestamp),
  revokedAt: Nullable(Timestamp),
  createdAt: Timestamp,
  createdBy: Nullable(
    Type.Object(
      {
        type: ShownOneOf(["member", "key"]),
        id: Type.String(),
        name: Nullable(Type.String({ description: "Null: it is gone, or your key is a project's." })),
      },
      { description: "The member or key that made it. Null: the command line or the first start." },
    ),
  ),
};
/** A key, without its secret. */
export const ApiKeySchema = Type.Object(KEY_FIELDS, { title: "ApiKey" });
const NEW_KEY_FIELDS = { ...KEY_FIELDS, secret: Type.String({ description: "Shown only in this answer." }) };
/** A new key, with its secret. */
export const NewApiKeySchema = Type.Object(NEW_KEY_FIELDS, { title: "NewApiKey" });

/** A key as a client asks for it. */
export const CreateApiKey = Type.Object({
  name: Name,
  senderId: Type.Optional(
    Nullable(
      Type.String({
        description: "Project that the key is limited to. If absent, the key is account-wide.",
        examples: ["snd_01hzy8"],
      }),
    ),
  ),
  scopes: Type.Optional(
    Type.Array(OneOf(SCOPES), {
      maxItems: SCOPES.length,
      description: "What the key may do. If absent or empty: everything.",
    }),
  ),
  allowRecipients: Type.Optional(
    Type.Array(
      Type.String({
        maxLength: 320,
        expected: "an email address or @domain",
        examples: ["ana@example.com", "@example.org"],
      }),
      {
        minItems: 1,
        maxItems: MAX_ALLOWED_RECIPIENTS,
        description:
          "The only recipients of the key's sends. `@example.org` means that very domain and none below it.",
      },
    ),
  ),
  approval: Type.Optional(
    Type.Boolean({
      description:
        "If true, the key's sends are `accepted` and wait until another key with `emails:approve` approves them. After 7 days they fail.",
    }),
  ),
  inboxIds: Type.Optional(
    Type.Array(Type.String({ maxLength: MAX_ID_CHARS, examples: ["inb_01hzy8"] }), {
      minItems: 1,
      maxItems: MAX_KEY_INBOXES,
      description:
        "The key reads the mail of these inboxes of its project and answers it. Everything else is refused with 403, or not found.",
    }),
  ),
});

/** Returns a key as the API shows it. */
export function showKey(key: ApiKey, principal: Principal): Record<string, unknown> {
  return {
    id: key.id,
    name: key.name,
    keyPrefix: key.keyPrefix,
    last4: key.last4,
    senderId: key.senderId,
    ...(key.senderExternalId === null ? {} : { senderExternalId: key.senderExternalId }),
    scopes: key.scopes,
    allowRecipients: key.allowRecipients,
    approval: key.approval,
    inboxIds: key.inboxIds,
    lastUsedAt: showTime(key.lastUsedAt),
    revokedAt: showTime(key.revokedAt),
    createdAt: showTime(key.createdAt),
    createdBy: makerOf(key, principal),
  };
}

/** Returns the maker of a key. A project's key, which may be a customer's, learns no name of another member or key. */
function makerOf(
  { createdBy, createdByName }: ApiKey,
  { senderId, keyId }: Principal,
): Record<string, unknown> | null {
  if (createdBy === null) return null;
  const seesName = senderId === null || keyId?.startsWith("mem_") === true;
  const type = createdBy.startsWith("key_") ? "key" : "member";
  return { type, id: createdBy, name: seesName ? createdByName : null };
}
