import { type Static, Type } from "@sinclair/typebox";
import { normalizeAddress } from "../../../core/addresses.ts";
import { readAll } from "../../../core/errors.ts";
import { findMessages, type FoundMessage, type MessageSearch } from "../../../flows/search/find-messages.ts";
import { textQuery } from "../../../store/search/text-query.ts";
import type { Wait } from "../../../flows/live/waits.ts";
import type { Db } from "../../../store/engine/client.ts";
import { awaitingApproval } from "../../../store/messages/approvals.ts";
import { validGrants } from "../../../store/projects/keys.ts";
import {
  listMessages,
  type MessageFilter,
  type MessagePage,
  type MessageSummary,
  summaryOf,
} from "../../../store/lists/message-list.ts";
import { invalidKey } from "../../access/auth.ts";
import { type Answer, type LaterAnswer, later, ok } from "../../routing/answer.ts";
import { timeOf } from "../../routing/day-or-time.ts";
import type { Page } from "../../routing/paging.ts";
import { type Principal, projectRoute, type Route } from "../../routing/route.ts";
import { DAY_OR_TIME, EMAIL, OneOf, PAGE_QUERY, Search } from "../../routing/schemas.ts";
import { TRUSTS } from "../../../core/messages/sender.ts";
import { MESSAGE_STATUSES } from "../../../core/messages/states.ts";
import {
  FoundPageOf,
  indexedSince,
  openPlaces,
  requireNoWait,
  sealPlaces,
  TextSearch,
} from "../../views/highlights.ts";
import { MessageSummaryView, showSummary } from "../../views/message.ts";
import type { Parts } from "../../routing/parts.ts";

/** Longest wait for a message, seconds. It is shorter than the idle timeout of proxies. */
const MAX_WAIT_SECONDS = 60;

const ListQuery = Type.Object({
  ...PAGE_QUERY,
  status: Type.Optional(OneOf([...MESSAGE_STATUSES, "complaint"], "`complaint` means `complained`.")),
  direction: Type.Optional(OneOf(["inbound", "outbound"])),
  trust: Type.Optional(OneOf(TRUSTS, "Of received messages: `sender.trust` of the record.")),
  q: Search(
    "Part of a recipient, the sender or the subject. Case does not matter. One page searches at most 2000 messages, so it may be short or empty although more follow.",
  ),
  text: TextSearch,
  from: Type.Optional(Type.String({ ...EMAIL, maxLength: 320, description: "The sender's address." })),
  to: Type.Optional(
    Type.String({ ...EMAIL, maxLength: 320, description: "A recipient's address in `to`, `cc` or `bcc`." }),
  ),
  tag: Type.Optional(
    Type.String({
      maxLength: 513,
      pattern: "^[^:]+:.+$",
      expected: "a tag as name:value",
      examples: ["campaign:spring"],
      description: "A tag as `name:value`.",
    }),
  ),
  after: Type.Optional(
    Type.String({
      description: "Created at or after this ISO 8601 time, or since the start of this UTC day.",
      ...DAY_OR_TIME,
    }),
  ),
  before: Type.Optional(
    Type.String({
      description: "Created before this ISO 8601 time, or before the start of this UTC day.",
      ...DAY_OR_TIME,
    }),
  ),
  wait: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_WAIT_SECONDS,
      description:
        "If no message fits, wait up to this many seconds for one, then answer with an empty page. Give `after` to wait for a new one.",
    }),
  ),
});

/** Returns the route of `GET /v1/emails`. */
export function emailListRoute(deps: Parts): Route {
  const { db, waits } = deps;
  return projectRoute({
    method: "GET",
    path: "/v1/emails",
    operationId: "listEmails",
    inboxes: "handler",
    scope: "emails:read",
    summary: "List messages, newest first",
    description: "Sent and received messages of the project. Filters can be combined.",
    query: ListQuery,
    answers: { 200: FoundPageOf(MessageSummaryView) },
    async handle({ senderId, principal, query, request, page: openedPage }) {
      const page = openedPage();
      const filter = withinKey(filterOf(query), principal);
      if (query.text !== undefined) {
        requireNoWait(query.wait);
        return answerFound(deps, { senderId, filter, query: textQuery(query.text) }, page);
      }
      const read = () => listMessages(db, senderId, filter, page.after, page.take);
      // New messages are on the first page.
      const show = (found: MessagePage) => answerOf(db, { senderId, page }, found);
      if (query.wait === undefined || page.after !== null) return show(await read());
      const wait = await waits.begin({ senderId, filter, ms: query.wait * 1000, signal: request.signal });
      const found = await read().catch((error: unknown) => {
        waits.leave(senderId, wait);
        throw error;
      });
      if (found.messages.length === 0)
        return later(new MessagesToCome(deps, wait, { owner: senderId, grant: principal.grant, page }));
      waits.leave(senderId, wait);
      return show(found);
    },
  });
}

/** The requested page. */
interface Asked {
  senderId: string;
  page: Page;
}

/** Answers with the messages that have words. A cursor holds a place in the index. */
async function answerFound(deps: Parts, search: MessageSearch, page: Page): Promise<Answer> {
  const key = deps.fileKey;
  const [from = null] = openPlaces(key, page.after) ?? [];
  const { messages, stoppedAt } = await findMessages(deps, search, from, page.take);
  const awaiting = await awaitingIn(deps.db, search.senderId, messages);
  const show = ({ next: _, ...message }: FoundMessage) => showSummary(message, awaiting.has(message.id));
  return ok({
    ...page.answer(
      messages,
      show,
      ({ next }) => sealPlaces(key, [next]),
      stoppedAt === null ? null : sealPlaces(key, [stoppedAt]),
    ),
    ...(await indexedSince(deps.db)),
  });
}

async function answerOf(
  db: Db,
  { senderId, page }: Asked,
  { messages, stoppedAt }: MessagePage,
): Promise<Answer> {
  const awaiting = await awaitingIn(db, senderId, messages);
  const show = (message: MessageSummary) => showSummary(message, awaiting.has(message.id));
  return ok(page.answer(messages, show, ({ id }) => id, stoppedAt));
}

async function awaitingIn(
  db: Db,
  senderId: string,
  messages: readonly MessageSummary[],
): Promise<Set<string>> {
  const accepted = messages.filter(({ status }) => status === "accepted").map(({ id }) => id);
  return awaitingApproval(db, senderId, accepted);
}

/** The page of the messages that come. */
class MessagesToCome implements LaterAnswer {
  readonly #deps: Parts;
  readonly #wait: Wait;
  readonly #grant: string | null;
  readonly #page: Page;
  readonly owner: string;

  constructor(deps: Parts, wait: Wait, { owner, grant, page }: Waiting) {
    this.#deps = deps;
    this.#wait = wait;
    this.#grant = grant;
    this.#page = page;
    this.owner = owner;
  }

  ready(): Promise<void> {
    return this.#wait.ended();
  }

  async make(): Promise<Answer> {
    const { db, waits } = this.#deps;
    waits.leave(this.owner, this.#wait);
    await requireUnrevoked(db, this.#grant);
    const messages = this.#wait.found.map(summaryOf);
    return answerOf(db, { senderId: this.owner, page: this.#page }, { messages, stoppedAt: null });
  }
}

interface Waiting {
  /** The project. */
  owner: string;
  grant: string | null;
  page: Page;
}

/** Throws 401 if the key was revoked while its request waited. */
async function requireUnrevoked(db: Db, grant: string | null): Promise<void> {
  if (grant === null) return;
  db.refreshReads();
  // A wait is short, so a session may outlast its time by that.
  if (!(await validGrants(db, [grant], 0)).has(grant)) throw invalidKey();
}

function filterOf(query: Static<typeof ListQuery>): MessageFilter {
  const { status, direction, trust, q, from, to, tag } = query;
  const [after, before] = readAll(
    () => timeOf("after", query.after),
    () => timeOf("before", query.before),
  );
  return {
    ...(status === undefined ? {} : { status: status === "complaint" ? "complained" : status }),
    ...(direction === undefined ? {} : { direction }),
    ...(trust === undefined ? {} : { trust }),
    ...(q === undefined ? {} : { q }),
    ...(from === undefined ? {} : { from: normalizeAddress(from) ?? from }),
    ...(to === undefined ? {} : { to: normalizeAddress(to) ?? to }),
    ...(tag === undefined ? {} : { tag: tagOf(tag) }),
    ...(after === undefined ? {} : { after }),
    ...(before === undefined ? {} : { before }),
  };
}

/** Returns the filter with the limits of the key. */
function withinKey(filter: MessageFilter, { bounds: { inboxIds } }: Principal): MessageFilter {
  return inboxIds === null ? filter : { ...filter, inboxIds };
}

function tagOf(text: string): { name: string; value: string } {
  const colon = text.indexOf(":");
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}
