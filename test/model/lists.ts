import type { Chance } from "../support/chance.ts";
import { ADDRESSES } from "./addresses.ts";
import { shownTime } from "./agree.ts";
import { some } from "./choice.ts";
import { contactView } from "./contacts.ts";
import { domainView } from "./domains.ts";
import { keyView } from "./keys.ts";
import { summaryView } from "./records.ts";
import { senderView } from "./senders.ts";
import {
  type Account,
  type Contact,
  type Inbox,
  type Webhook,
  type Message,
  newestFirst,
  type Project,
  statusOf,
  type Suppression,
  type World,
} from "./state.ts";
import { isOver, suppressionView } from "./suppressions.ts";
import { templateView } from "./templates.ts";
import { threadView } from "./threads.ts";
import { webhookView } from "./webhooks.ts";

/**
 * A list, and its items by the model, in order. The model is read again at each page, because other operations
 * continue.
 */
export interface List {
  account: Account;
  project: Project | null;
  path: string;
  scope: string;
  wide?: boolean;
  query: Readonly<Record<string, string>>;
  items(): { id: string; view: object }[];
}

type Query = Readonly<Record<string, string>>;

const shown = <Item extends { id: string }>(items: readonly Item[], view: (item: Item) => object) =>
  newestFirst(items).map((item) => ({ id: item.id, view: view(item) }));

const includes = (text: string | null, part: string): boolean =>
  text?.toLowerCase().includes(part.toLowerCase()) === true;

/** Some of the filters, each now and then. */
function filters(chance: Chance, all: Readonly<Record<string, readonly [string, ...string[]]>>): Query {
  const chosen = Object.entries(all).filter(() => chance.happens(0.35));
  return Object.fromEntries(chosen.map(([name, values]) => [name, chance.pick(values)]));
}

function fitsMessage(
  message: Message,
  { status, direction, q, from, to, tag, after, before }: Query,
): boolean {
  const recipients = [...message.to, ...message.cc, ...message.bcc];
  const wanted = status === "complaint" ? "complained" : status;
  return (
    (wanted === undefined || statusOf(message) === wanted) &&
    (direction === undefined || message.direction === direction) &&
    (q === undefined || [message.from, message.subject, ...recipients].some((text) => includes(text, q))) &&
    (from === undefined || message.from.toLowerCase() === from.toLowerCase()) &&
    (to === undefined || recipients.some((email) => email.toLowerCase() === to.toLowerCase())) &&
    (tag === undefined || message.tags.some(({ name, value }) => `${name}:${value}` === tag)) &&
    (after === undefined || message.createdAt >= Date.parse(after)) &&
    (before === undefined || message.createdAt < Date.parse(before))
  );
}

function messageList(world: World, chance: Chance, project: Project): List {
  const one = some(chance, project.messages);
  const at = shownTime(one?.createdAt ?? world.stage.clock.now());
  const query = filters(chance, {
    status: [
      "delivered",
      "bounced",
      "queued",
      "complained",
      "complaint",
      "accepted",
      "rejected",
      "failed",
      "delivery_delayed",
    ],
    direction: ["inbound", "outbound"],
    q: [
      "hello",
      "50%_",
      "größe",
      "привет",
      "МИР",
      "ok.example",
      "_cent",
      "simulator",
      "invoice 7",
      "@",
      "ok",
      "no such text",
    ],
    from: [one?.from ?? "nobody@ok.example", (one?.from ?? "x@y.example").toUpperCase()],
    to: [...ADDRESSES],
    tag: ["kind:news", "kind:bill", "kind:none"],
    after: [at],
    before: [at, shownTime(world.stage.clock.now())],
  });
  // The subject of a templated message is left open until it is rendered, so searches leave it out.
  const found = () => project.messages.filter((message) => fitsMessage(message, query));
  return ofProject(project, "/v1/emails", "emails:read", query, () => shown(found(), summaryView));
}

function fitsContact({ email, firstName, lastName, subscribed }: Contact, query: Query): boolean {
  const { q } = query;
  return (
    (query.subscribed === undefined || String(subscribed) === query.subscribed) &&
    (q === undefined || [email, firstName, lastName].some((text) => includes(text, q)))
  );
}

function contactList(chance: Chance, project: Project): List {
  const query = filters(chance, {
    subscribed: ["true", "false"],
    q: ["ada", "OK.EX", "%_", "_", "björ", "Björ", "zzz", "привет мир", "ÉLISE À"],
  });
  const found = () => project.contacts.filter((contact) => fitsContact(contact, query));
  return ofProject(project, "/v1/contacts", "contacts:read", query, () => shown(found(), contactView));
}

function fitsSuppression({ email, reason }: Suppression, query: Query): boolean {
  return (
    (query.email === undefined || email === query.email.toLowerCase()) &&
    (query.reason === undefined || reason === query.reason) &&
    (query.q === undefined || includes(email, query.q))
  );
}

function suppressionList({ stage }: World, chance: Chance, project: Project): List {
  const query = filters(chance, {
    email: [ADDRESSES[0], "ADA@OK.EXAMPLE", ADDRESSES[4]],
    reason: ["bounce", "complaint", "manual"],
    q: ["ok.ex", "_", "GONE"],
  });
  // The model does not say if an expired entry is shown. The service does not show it.
  const isShown = (entry: Suppression) => !isOver(entry, stage.clock.now()) && fitsSuppression(entry, query);
  const found = () => project.suppressions.filter(isShown);
  const items = () =>
    newestFirst(found()).map((entry) => ({ id: entry.email, view: suppressionView(entry) }));
  return ofProject(project, "/v1/suppressions", "suppressions:read", query, items);
}

function ofProject(project: Project, path: string, scope: string, query: Query, items: List["items"]): List {
  return { account: project.account, project, path, scope, query, items };
}

/** Every kind of list of a project. */
export function listsOf(world: World, chance: Chance, project: Project): List[] {
  const { templates, webhooks, domains } = project;
  const inbox = some(chance, project.inboxes);
  const thread = some(chance, project.threads);
  const webhook = some(chance, webhooks);
  return [
    messageList(world, chance, project),
    contactList(chance, project),
    suppressionList(world, chance, project),
    ofProject(project, "/v1/templates", "templates:read", {}, () => shown(templates, templateView)),
    ofProject(project, "/v1/webhooks", "webhooks:read", {}, () => shown(webhooks, webhookView)),
    ofProject(project, "/v1/domains", "domains:read", {}, () => shown(domains, domainView)),
    ...(inbox === undefined ? [] : [threadList(chance, project, inbox)]),
    ...(thread === undefined
      ? []
      : [
          ofProject(project, `/v1/threads/${thread.id}/messages`, "threads:read", {}, () =>
            shown(thread.messages, ({ id }) => ({ id })),
          ),
        ]),
    ...(webhook === undefined ? [] : [deliveryLog(chance, project, webhook)]),
  ];
}

function deliveryLog(chance: Chance, project: Project, webhook: Webhook): List {
  const query = filters(chance, { status: ["pending", "succeeded", "failed"] });
  const items = () => webhook.deliveries.filter(({ status }) => (query.status ?? status) === status);
  return ofProject(project, `/v1/webhooks/${webhook.id}/deliveries`, "webhooks:read", query, () =>
    shown(items(), ({ id, type, status, attempts }) => ({ id, type, status, attempts })),
  );
}

/** A part of the subject finds a thread. The searched words occur nowhere else. */
function threadList(chance: Chance, project: Project, inbox: Inbox): List {
  const query = filters(chance, { q: ["GRÖSSE 50%_", "größe", "ВОПРОС", "50%_", "no such text"] });
  const items = () =>
    byActivity(project, inbox.id)
      .filter(({ subject }) => query.q === undefined || includes(subject, query.q))
      .map((one) => ({ id: one.id, view: threadView(project, one) }));
  return ofProject(project, `/v1/inboxes/${inbox.id}/threads`, "threads:read", query, items);
}

/** If threads moved at the same time, the one made later is listed first. */
function byActivity(project: Project, inboxId: string): Project["threads"] {
  const own = newestFirst(project.threads.filter(({ inbox }) => inbox.id === inboxId));
  return own.sort((one, other) => other.lastMessageAt - one.lastMessageAt);
}

/** Lists of an account. */
export function listsOfAccount(account: Account): List[] {
  const common = { account, project: null, query: {} };
  const keys = () => shown(account.keys, keyView);
  const senders = () => shown(account.projects, senderView);
  return [
    { ...common, path: "/v1/api-keys", scope: "api_keys:read", wide: true, items: keys },
    { ...common, path: "/v1/senders", scope: "senders:read", wide: true, items: senders },
  ];
}
