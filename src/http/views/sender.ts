import { type Static, Type } from "@sinclair/typebox";
import { MAX_POSTAL_ADDRESS_CHARS } from "../../core/audience/postal-address.ts";
import { SPAM_CHECK_FAIL } from "../../core/messages/spam.ts";
import { OpenTrackingSchema } from "../../core/messages/tracking.ts";
import type { Project } from "../../store/projects/projects.ts";
import { Nullable, OneOf, PlanName, showTime, TierName, Timestamp } from "../routing/schemas.ts";
import { ShownRouteIds } from "./route-ids.ts";

/** The routes of a project that names none. */
export const NO_ROUTE_IDS = "the default route";

/** Tracking of messages. */
export const Tracking = Type.Object({ opens: OpenTrackingSchema, clicks: Type.Boolean() });

/** A switch of a project. */
export const TextFromHtml = Type.Boolean({
  description: "Whether a message that has html alone gets a text part made from it.",
});

/** Longest retention of a project, days: ten years. */
const MAX_RETENTION_DAYS = 3650;
const Days = (description: string) =>
  Nullable(Type.Integer({ minimum: 1, maximum: MAX_RETENTION_DAYS, description, examples: [30] }));
/** How long data is kept. */
export const Retention = Type.Object({
  contentDays: Days(
    "Days after which bodies, raw messages and files go. Null: RETENTION_CONTENT_DAYS of the installation.",
  ),
  eventDays: Days(
    "Days after which messages go, with their events and webhook log. Null: RETENTION_EVENT_DAYS of the installation.",
  ),
});

/** A choice of a project. */
export const SpamCheckFail = Nullable(
  OneOf(
    SPAM_CHECK_FAIL,
    "What happens to mail if the spam filter fails: `accept` takes it without a verdict, `defer` answers 451. Null: SPAM_CHECK_FAIL of the installation.",
  ),
);

/** The address that every broadcast of a project shows. */
export const PostalAddress = Nullable(
  Type.String({
    maxLength: MAX_POSTAL_ADDRESS_CHARS,
    pattern: "^[^\\u0000{}]*$",
    meaning: "without braces and NUL",
    description:
      "Each broadcast must show it, by `{{ postalAddress }}` or as text, as laws such as CAN-SPAM ask. Null: broadcasts need none.",
    examples: ["Acme GmbH, Main Street 1, 1010 Vienna, Austria"],
  }),
);

/** A project as the API shows it. */
export const SenderSchema = Type.Object(
  {
    id: Type.String(),
    externalId: Type.String(),
    name: Type.String(),
    plan: PlanName,
    trustTier: TierName,
    dailyQuota: Nullable(
      Type.Integer({ description: "The project's own limit, if it is lower than the tier's." }),
    ),
    tracking: Tracking,
    textFromHtml: TextFromHtml,
    routeIds: ShownRouteIds(NO_ROUTE_IDS),
    retention: Retention,
    spamCheckFail: SpamCheckFail,
    postalAddress: PostalAddress,
    suspendedAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "Sender" },
);

/** Returns a project as the API shows it. */
export function showSender(sender: Project): Static<typeof SenderSchema> {
  return {
    id: sender.id,
    externalId: sender.externalId,
    name: sender.name,
    plan: sender.plan,
    trustTier: sender.trustTier,
    dailyQuota: sender.dailyQuota,
    tracking: { opens: sender.trackOpens, clicks: sender.trackClicks },
    textFromHtml: sender.textFromHtml,
    routeIds: [...sender.routeIds],
    retention: { contentDays: sender.contentDays, eventDays: sender.eventDays },
    spamCheckFail: sender.spamCheckFail,
    postalAddress: sender.postalAddress,
    suspendedAt: showTime(sender.suspendedAt),
    createdAt: showTime(sender.createdAt),
  };
}
