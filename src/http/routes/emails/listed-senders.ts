import { Type } from "@sinclair/typebox";
import { AppError, existing, invalid, notFound } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import {
  MAX_LISTED,
  SENDER_LISTS,
  type SenderList,
  senderPattern,
} from "../../../core/messages/listed-sender.ts";
import { ConstraintError, type Db, type Statement } from "../../../store/engine/client.ts";
import { tooManyRecords } from "../../../flows/quotas.ts";
import { getInbox } from "../../../store/threads/inboxes.ts";
import {
  deleteListed,
  insertListed,
  listListed,
  type ListedSender,
} from "../../../store/threads/listed-senders.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";

const List = OneOf(
  SENDER_LISTS,
  "`allow`: its authenticated mail has the trust `allowed`. `block`: its mail is refused.",
);
const Pattern = Type.String({
  minLength: 1,
  maxLength: 320,
  description:
    "An address, or `@` and a domain, which means that very domain. An address decides before its domain.",
  examples: ["@example.com"],
});
const ListedView = Type.Object(
  {
    id: Type.String(),
    inboxId: Nullable(Type.String({ description: "Null: every inbox of the project." })),
    pattern: Type.String(),
    list: List,
    createdAt: Timestamp,
  },
  { title: "ListedSender" },
);
const NewListed = Type.Object({ pattern: Pattern, list: List }, { title: "NewListedSender" });

/** Returns a listed sender as the API shows it. */
export function showListed({ id, inboxId, pattern, list, createdAt }: ListedSender) {
  return { id, inboxId, pattern, list, createdAt: showTime(createdAt) };
}

/** The list of one inbox, or of the project. */
interface Place {
  path: string;
  /** The end of the names of its operations. */
  of: string;
  words: string;
  /** Returns the inbox; null for the project. Throws 404 if the project has no such inbox. */
  inboxId(senderId: string, params: Readonly<Record<string, string>>): Promise<string | null>;
}

/** Returns the routes of the lists of senders. */
export function listedSenderRoutes({ db }: { db: Db }): Route[] {
  const ofInbox: Place = {
    path: "/v1/inboxes/:id/senders",
    of: "InboxSender",
    words: "an inbox",
    inboxId: async (senderId, { id = "" }) => existing("inbox", await getInbox(db, senderId, id)).id,
  };
  const ofProject: Place = {
    path: "/v1/inbound/senders",
    of: "ProjectSender",
    words: "all inboxes of the project",
    inboxId: async () => null,
  };
  return [ofInbox, ofProject].flatMap((place) => routesOf(db, place));
}

function routesOf(db: Db, { path, of, words, inboxId }: Place): Route[] {
  return [
    projectRoute({
      method: "POST",
      path,
      operationId: `create${of}`,
      stores: {},
      summary: `Allow or block a sender for ${words}`,
      description: `Mail of blocked senders gets 550, by From or by the envelope. Allowing counts only for mail that DMARC proves. A project has at most ${MAX_LISTED} listed senders.`,
      scope: "inboxes:write",
      examples: { body: { pattern: "@example.com", list: "allow" } },
      body: NewListed,
      answers: { 201: ListedView },
      async handle({ senderId, params, body, now, record }) {
        const at = await inboxId(senderId, params);
        const listed = newListed({ senderId, inboxId: at, ...body }, now);
        const answer = created(showListed(listed));
        await store(db, listed, record(answer));
        return answer;
      },
    }),
    projectRoute({
      method: "GET",
      path,
      operationId: `list${of}s`,
      summary: `List the allowed and blocked senders of ${words}`,
      description: "Newest first. A list of an inbox and that of its project count together.",
      scope: "inboxes:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(ListedView) },
      async handle({ senderId, params, page }) {
        const { after, take, answer } = page();
        const listed = await listListed(db, senderId, await inboxId(senderId, params), after, take);
        return ok(answer(listed, showListed, ({ id }) => id));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: `${path}/:entryId`,
      operationId: `delete${of}`,
      summary: `Take a sender off the list of ${words}`,
      description: "Its mail is judged as that of other senders.",
      scope: "inboxes:write",
      answers: { 204: null },
      async handle({ senderId, params }) {
        if (await deleteListed(db, senderId, await inboxId(senderId, params), params.entryId))
          return noContent();
        throw notFound("sender");
      },
    }),
  ];
}

function newListed(
  given: { senderId: string; inboxId: string | null; pattern: string; list: SenderList },
  now: number,
): ListedSender {
  const pattern = senderPattern(given.pattern);
  if (pattern === null)
    throw invalid("pattern", 'must be an address or "@" and a domain, such as "@example.com".');
  return { id: newId("lse", now), ...given, pattern, createdAt: now };
}

async function store(db: Db, listed: ListedSender, record: readonly Statement[]): Promise<void> {
  try {
    await db.write([...insertListed(listed), ...record]);
  } catch (error) {
    if (!(error instanceof ConstraintError)) throw error;
    if (error.foreignKey) throw notFound("inbox");
    if (error.unique === undefined || error.unique === null)
      return tooManyRecords(`A project has at most ${MAX_LISTED} listed senders.`, "senders")(error);
    throw new AppError("conflict", `${listed.pattern} is on a list there already. Delete that entry first.`, {
      code: "duplicate",
      param: "pattern",
    });
  }
}
