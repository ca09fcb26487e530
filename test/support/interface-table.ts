/** The type of a resource's field, and whether it is always present. */
export interface Field {
  types: readonly string[];
  timestamp: boolean;
  always: boolean;
}

/**
 * A field as the tables below spell it: types separated by `|`, `time` for a timestamp, `?` after one that may be
 * absent.
 */
type Spelled = string;

function fieldOf(spelled: Spelled): Field {
  const names = spelled.replace(/\?$/, "").split("|");
  return {
    types: names.map((name) => (name === "time" ? "string" : name)),
    timestamp: names.includes("time"),
    always: !spelled.endsWith("?"),
  };
}

function fields(spelled: Readonly<Record<string, Spelled>>): Readonly<Record<string, Field>> {
  return Object.fromEntries(Object.entries(spelled).map(([name, text]) => [name, fieldOf(text)]));
}

const API_KEY = {
  id: "string",
  name: "string",
  keyPrefix: "string",
  last4: "string",
  senderId: "string|null",
  senderExternalId: "string?",
  scopes: "array",
  lastUsedAt: "time|null",
  revokedAt: "time|null",
  createdAt: "time",
};
const MESSAGE_SUMMARY = {
  id: "string",
  from: "string",
  to: "array",
  subject: "string",
  status: "string",
  direction: "string",
  createdAt: "time",
};
const CONTACT = {
  id: "string",
  email: "string",
  firstName: "string|null",
  lastName: "string|null",
  subscribed: "boolean",
  unsubscribedAt: "time|null",
  metadata: "object",
  createdAt: "time",
};
const TEMPLATE = {
  id: "string",
  slug: "string",
  name: "string",
  subject: "string",
  html: "string|null",
  text: "string|null",
  variables: "array",
  createdAt: "time",
  updatedAt: "time",
};
const RENDERED = { subject: "string", html: "string|null", text: "string|null", missing: "array" };
const DOMAIN = { id: "string", domain: "string", status: "string", records: "array" };
const RECEIVING = { enabled: "boolean", records: "array" };
const INBOX = {
  id: "string",
  senderId: "string",
  domainId: "string",
  address: "string",
  displayName: "string",
  type: "string",
  createdAt: "time",
};
const WEBHOOK = {
  id: "string",
  url: "string",
  enabled: "boolean",
  eventTypes: "array",
  signingSecret: "string",
};

/** Resources nested in others, and the page envelope. */
export const RECORDS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {
  dns: fields({
    type: "string",
    name: "string",
    value: "string",
    priority: "integer?",
    purpose: "string",
    verified: "boolean",
  }),
  health: fields({ dkim: "string", spf: "string", dmarc: "string" }),
  itemError: fields({ message: "string", code: "string", param: "string?" }),
  page: fields({ data: "array", nextCursor: "string|null" }),
};

export interface Endpoint {
  /** Method and path, without the names of its segments. */
  key: string;
  status: number;
  /** `page`: the page envelope. `flat`: `data` without a cursor. */
  shape: "one" | "page" | "flat" | "none";
  shows: Readonly<Record<string, Field>>;
  /** Fields that hold other records: their names, and which. */
  inner?: Readonly<Record<string, keyof typeof RECORDS>>;
  query?: readonly string[];
  /** Fields of the body, and the required ones among them. */
  takes?: readonly string[];
  requires?: readonly string[];
  errors?: readonly number[];
  /** Fields that must be empty. */
  hides?: readonly string[];
  /** Values of the first resource of the live answer. */
  values?: Readonly<Record<string, unknown>>;
  /** The fields that the items of a body's list take. */
  itemsTake?: Readonly<Record<string, readonly string[]>>;
  /** Set if the interface calls it without a body although it may take one. */
  noBody?: boolean;
  /** Uses the inbox that has received mail, not a new one. */
  ofDesk?: boolean;
}

type Extra = Omit<Endpoint, "key" | "status" | "shape" | "shows">;

function row(
  key: string,
  status: number,
  shape: Endpoint["shape"],
  shows: Readonly<Record<string, Spelled>>,
  extra: Extra = {},
): Endpoint {
  return { key, status, shape, shows: fields(shows), ...extra };
}

const PAGE = ["limit", "cursor"];
const SEND_ITEM = [
  "from",
  "to",
  "cc",
  "bcc",
  "replyTo",
  "subject",
  "html",
  "text",
  "templateId",
  "data",
  "headers",
  "tags",
  "attachments",
  "scheduledAt",
];

/** The endpoints whose path the interface gives, in the order of the interface. */
const GIVEN: readonly Endpoint[] = [
  row(
    "POST /v1/api-keys",
    201,
    "one",
    { ...API_KEY, secret: "string" },
    {
      takes: ["name", "senderId", "scopes"],
      requires: ["name"],
      values: { lastUsedAt: null, revokedAt: null },
    },
  ),
  row("GET /v1/api-keys", 200, "page", API_KEY, { query: PAGE, hides: ["secret"] }),
  row("DELETE /v1/api-keys/{}", 204, "none", {}),
  row("POST /v1/emails", 202, "one", { id: "string", status: "string" }, { takes: SEND_ITEM }),
  row(
    "POST /v1/emails/batch",
    207,
    "flat",
    { id: "string?", error: "object?" },
    {
      takes: ["emails"],
      requires: ["emails"],
      itemsTake: { emails: SEND_ITEM },
      inner: { error: "itemError" },
    },
  ),
  row("GET /v1/emails", 200, "page", MESSAGE_SUMMARY, {
    query: [...PAGE, "status", "direction", "q"],
    hides: ["html", "text", "events"],
  }),
  row("GET /v1/emails/{}", 200, "one", {
    ...MESSAGE_SUMMARY,
    html: "string|null",
    text: "string|null",
    events: "array",
  }),
  row("GET /v1/templates", 200, "page", TEMPLATE, { query: PAGE }),
  row("POST /v1/templates/{}/render", 200, "one", RENDERED, { takes: ["data"] }),
  row("POST /v1/templates/preview", 200, "one", RENDERED, { takes: ["subject", "html", "text", "data"] }),
  row("GET /v1/contacts", 200, "page", CONTACT, { query: [...PAGE, "subscribed", "q"] }),
  row(
    "PATCH /v1/contacts/{}",
    200,
    "one",
    { ...CONTACT, updatedAt: "time" },
    {
      takes: ["firstName", "lastName", "metadata"],
    },
  ),
  row(
    "POST /v1/contacts/{}/unsubscribe",
    200,
    "one",
    { ...CONTACT, unsubscribedAt: "time|null", updatedAt: "time" },
    {
      values: { subscribed: false },
    },
  ),
  row("POST /v1/domains", 201, "one", DOMAIN, {
    takes: ["domain"],
    requires: ["domain"],
    inner: { records: "dns" },
    values: { status: "pending" },
  }),
  row(
    "POST /v1/domains/{}/verify",
    200,
    "one",
    { ...DOMAIN, authHealth: "object" },
    {
      inner: { records: "dns", authHealth: "health" },
      noBody: true,
    },
  ),
  row("PATCH /v1/domains/{}/receiving", 200, "one", RECEIVING, {
    takes: ["enabled"],
    requires: ["enabled"],
    inner: { records: "dns" },
  }),
  row("GET /v1/domains/{}/receiving", 200, "one", RECEIVING, { inner: { records: "dns" } }),
  row("GET /v1/inboxes", 200, "flat", INBOX, { query: ["domainId"], hides: ["nextCursor"] }),
  row("DELETE /v1/inboxes/{}", 204, "none", {}, { errors: [409] }),
  row("DELETE /v1/suppressions", 204, "none", {}, { query: ["email"] }),
  row("POST /v1/webhooks", 201, "one", WEBHOOK, { takes: ["url", "eventTypes"], values: { enabled: true } }),
  row("GET /v1/webhooks/{}", 200, "one", WEBHOOK, { hides: ["signingSecret"] }),
  row("PATCH /v1/webhooks/{}", 200, "one", WEBHOOK, {
    takes: ["enabled", "url", "eventTypes"],
    hides: ["signingSecret"],
  }),
  row("POST /v1/inbound/simulate", 202, "one", {}),
];

/** The operations that the interface names without showing their path or payload. */
const NAMED: readonly Endpoint[] = [
  row("POST /v1/templates", 201, "one", TEMPLATE),
  row("GET /v1/templates/{}", 200, "one", TEMPLATE),
  row("PATCH /v1/templates/{}", 200, "one", TEMPLATE),
  row("DELETE /v1/templates/{}", 204, "none", {}),
  row("POST /v1/contacts", 201, "one", CONTACT, { values: { subscribed: true } }),
  row("GET /v1/contacts/{}", 200, "one", CONTACT),
  row("DELETE /v1/contacts/{}", 204, "none", {}),
  row("POST /v1/contacts/{}/resubscribe", 200, "one", CONTACT, {
    values: { subscribed: true, unsubscribedAt: null },
  }),
  row("GET /v1/domains", 200, "page", DOMAIN, { query: PAGE, inner: { records: "dns" } }),
  row("GET /v1/domains/{}", 200, "one", DOMAIN, { inner: { records: "dns" } }),
  row("POST /v1/inboxes", 201, "one", INBOX),
  row("GET /v1/inboxes/{}/threads", 200, "page", { id: "string" }, { query: PAGE, ofDesk: true }),
  row("GET /v1/threads/{}", 200, "one", { id: "string" }),
  row("POST /v1/threads/{}/reply", 202, "one", { id: "string", status: "string" }),
  row("GET /v1/suppressions", 200, "page", { email: "string" }, { query: PAGE }),
  row("POST /v1/suppressions", 201, "one", { email: "string" }),
  row("GET /v1/webhooks", 200, "page", WEBHOOK, { query: PAGE, hides: ["signingSecret"] }),
  row("DELETE /v1/webhooks/{}", 204, "none", {}),
];

export const ENDPOINTS: readonly Endpoint[] = [...GIVEN, ...NAMED];

/** Endpoints that the service does not serve yet, with the reason. If one is served, remove it here. */
export const PENDING: Readonly<Record<string, string>> = {};
