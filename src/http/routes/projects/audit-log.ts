import { type Static, Type } from "@sinclair/typebox";
import { readAll } from "../../../core/errors.ts";
import {
  type AuditEntry,
  type AuditFilter,
  type AuditPosition,
  listAudit,
} from "../../../store/installation/audit-log.ts";
import { timeOf } from "../../routing/day-or-time.ts";
import type { Parts } from "../../routing/parts.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import {
  DAY_OR_TIME,
  Nullable,
  OneOf,
  PAGE_QUERY,
  PageOf,
  showTime,
  Timestamp,
} from "../../routing/schemas.ts";
import { AS_NDJSON, pageOrWhole } from "../../routing/whole-list.ts";

const ACTORS = ["member", "key", "cli", "service"] as const;

const NamedThing = { name: Nullable(Type.String()) };

const ChangedValue = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Boolean(),
  Type.Null(),
  Type.Array(Type.String()),
  Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Null()])),
]);

const AuditEntryView = Type.Object(
  {
    id: Type.String({ examples: ["aud_42"] }),
    at: Timestamp,
    actor: Type.Object({
      type: OneOf(ACTORS, "`service`: Postrider itself, or a link in a message. `cli`: the command line."),
      id: Nullable(Type.String({ examples: ["key_01jv6m2k3n4p5q6r7s8t9v0w1x"] })),
      ...NamedThing,
    }),
    action: Type.String({ description: "Noun and verb.", examples: ["domain.create"] }),
    target: Type.Object({
      type: Type.String({ examples: ["domain"] }),
      id: Type.String({ examples: ["dom_01jv6m2k3n4p5q6r7s8t9v0w1x"] }),
      ...NamedThing,
    }),
    senderId: Nullable(Type.String({ description: "The project. Null: the account." })),
    changes: Type.Record(Type.String(), Type.Array(ChangedValue, { minItems: 2, maxItems: 2 }), {
      description:
        "The changed fields as [before, after]. A secret is `***`. A long string is cut after 1000 characters.",
      examples: [{}],
    }),
    ip: Nullable(Type.String({ examples: ["203.0.113.9"] })),
    requestId: Nullable(Type.String({ examples: ["req_01jv6m2k3n4p5q6r7s8t9v0w1x"] })),
  },
  { title: "AuditEntry" },
);

const Filter = (description: string, examples: string[]) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 100, description, examples }));

const AuditQuery = Type.Object({
  ...PAGE_QUERY,
  actor: Filter("Who made the change: the id of a key or member, or `member`, `key`, `cli`, `service`.", [
    "key",
  ]),
  action: Filter("Noun and verb.", ["domain.delete"]),
  target: Filter("What changed: its id, or its type, such as `domain`.", ["domain"]),
  senderId: Filter("The id of a project.", ["snd_01jv6m2k3n4p5q6r7s8t9v0w1x"]),
  after: Type.Optional(
    Type.String({ ...DAY_OR_TIME, description: "At or after this time, or since this UTC day." }),
  ),
  before: Type.Optional(
    Type.String({ ...DAY_OR_TIME, description: "Before this time, or before this UTC day." }),
  ),
});

/** Returns the route of the audit trail. */
export function auditLogRoutes({ db, handOut }: Parts): Route[] {
  return [
    accountRoute({
      method: "GET",
      path: "/v1/audit-log",
      operationId: "listAuditLog",
      summary: "List who changed what",
      description: `Every change by a key, a member, the command line or the service is one entry, newest first. Sent messages are in the list of emails instead. ${AS_NDJSON} RETENTION_AUDIT_DAYS limits how long entries stay. Requires an account-wide key.`,
      scope: "audit:read",
      accountWide: true,
      query: AuditQuery,
      answers: { 200: PageOf(AuditEntryView) },
      handle({ request, query, principal: { accountId }, page }) {
        const filter = filterOf(query);
        return pageOrWhole(
          { handOut },
          { request, page },
          {
            owner: accountId,
            read: async (after, take) => ({
              rows: await listAudit(db, accountId, filter, positionOf(after), take),
            }),
            show: showAuditEntry,
            position: positionText,
          },
        );
      },
    }),
  ];
}

function filterOf({ actor, action, target, senderId, ...times }: Static<typeof AuditQuery>): AuditFilter {
  const [after, before] = readAll(
    () => timeOf("after", times.after),
    () => timeOf("before", times.before),
  );
  return { actor, action, target, senderId, after, before };
}

function positionText({ at, seq }: AuditPosition): string {
  return `${at} ${seq}`;
}

function positionOf(text: string | null): AuditPosition | null {
  if (text === null) return null;
  const [at = "", seq = ""] = text.split(" ");
  return { at: Number(at), seq: Number(seq) };
}

/** Returns a change as the API shows it. */
export function showAuditEntry(entry: AuditEntry): Static<typeof AuditEntryView> {
  const { seq, at, action, senderId, changes, ip, requestId } = entry;
  return {
    id: `aud_${seq}`,
    at: showTime(at),
    actor: { type: entry.actorType, id: entry.actorId, name: entry.actorName },
    action,
    target: { type: entry.targetType, id: entry.targetId, name: entry.targetName },
    senderId,
    changes,
    ip,
    requestId,
  };
}
