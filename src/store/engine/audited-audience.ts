import { AUDITED, type Audited, BY_PROJECT, withFields } from "./audited-tables.ts";

/** Of a table whose rows are marked first, and deleted once no contact has a value of them. */
const MARKED_FIRST = {
  named: [{ verb: "delete", when: "OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL" }],
  marks: ["deleted_at"],
  goes: "OLD.deleted_at IS NOT NULL",
};

const PROPERTIES: Audited = {
  table: "contact_properties",
  noun: "contact_property",
  name: "name",
  ...BY_PROJECT,
  ...MARKED_FIRST,
  fields: { name: "name", type: "type", fallback: ["fallback", "long"] },
};

/** The tables of the step of properties, which makes the triggers of contacts again. */
export const AUDITED_CONTACTS: readonly Audited[] = [
  PROPERTIES,
  ...withFields(AUDITED, "contacts", { properties: ["properties", "long"] }),
];

const TOPICS: Audited = {
  table: "topics",
  noun: "topic",
  name: "name",
  ...BY_PROJECT,
  ...MARKED_FIRST,
  fields: {
    name: "name",
    description: ["description", "long"],
    default_subscribed: ["defaultSubscribed", "flag"],
    visible: ["visible", "flag"],
  },
};

/** The tables of the step of topics, which makes the triggers of contacts again. */
export const AUDITED_TOPICS: readonly Audited[] = [
  TOPICS,
  ...withFields(AUDITED_CONTACTS, "contacts", { topics: ["topics", "long"] }),
];

/** The table of the step of double opt-in, which makes the triggers of topics again. */
export const AUDITED_DOUBLE_OPT_IN: readonly Audited[] = withFields(AUDITED_TOPICS, "topics", {
  double_opt_in: ["doubleOptIn", "flag"],
});

/** The table of the step of segments. */
export const AUDITED_SEGMENTS: readonly Audited[] = [
  {
    table: "segments",
    noun: "segment",
    name: "name",
    ...BY_PROJECT,
    fields: { name: "name", filter: ["filter", "json"] },
  },
];

/** The table of the step of broadcasts. The chore that makes their messages is not in the trail. */
export const AUDITED_BROADCAST: readonly Audited[] = [
  {
    table: "broadcasts",
    noun: "broadcast",
    name: "name",
    ...BY_PROJECT,
    fields: {
      name: "name",
      status: "status",
      topic_id: "topicId",
      segment_id: "segmentId",
      from_email: "from",
      from_name: "fromName",
      reply_to: ["replyTo", "json"],
      subject: ["subject", "long"],
      template_id: "templateId",
      scheduled_at: ["scheduledAt", "time"],
      rate_per_hour: "ratePerHour",
      route_ids: ["routeIds", "json"],
      ab_test: ["abTest", "json"],
    },
  },
];

/** The table of the step of postal addresses, which makes the triggers of projects again. */
export const AUDITED_POSTAL_ADDRESS: readonly Audited[] = withFields(AUDITED, "senders", {
  postal_address: ["postalAddress", "long"],
});

/** The tables of all steps of the audience, as the last of them watches them. */
export const AUDITED_AUDIENCE: readonly Audited[] = [
  PROPERTIES,
  ...AUDITED_TOPICS.filter(({ table }) => table !== "topics"),
  ...AUDITED_DOUBLE_OPT_IN,
  ...AUDITED_SEGMENTS,
  ...AUDITED_BROADCAST,
  ...AUDITED_POSTAL_ADDRESS,
];
