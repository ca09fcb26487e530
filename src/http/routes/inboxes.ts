import { type Static, Type } from "@sinclair/typebox";
import { inboxLocalPart, NO_ADDRESS, splitAddress } from "../../core/addresses.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { ConstraintError, type Db } from "../../store/engine/client.ts";
import { type Domain, findDomain, getDomain } from "../../store/domains.ts";
import { deleteInbox } from "../../store/inbox-removal.ts";
import {
  getInbox,
  INBOX_TYPES,
  type Inbox,
  insertInbox,
  listInboxes,
  updateInbox,
} from "../../store/inboxes.ts";
import { created, noContent, ok } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";
import { MAX_NAME_CHARS, ONE_LINE, OneOf, showTime, Timestamp } from "../schemas.ts";

const InboxSchema = Type.Object(
  {
    id: Type.String(),
    senderId: Type.String(),
    domainId: Type.String(),
    address: Type.String(),
    displayName: Type.String(),
    type: OneOf(INBOX_TYPES),
    createdAt: Timestamp,
  },
  { title: "Inbox" },
);

const DisplayName = Type.String({ maxLength: MAX_NAME_CHARS, pattern: ONE_LINE });
const CreateInbox = Type.Object({
  address: Type.Optional(Type.String({ description: "Whole address, at a domain of the project." })),
  localPart: Type.Optional(Type.String({ description: "Together with `domainId`, in place of `address`." })),
  domainId: Type.Optional(Type.String()),
  displayName: Type.Optional(DisplayName),
  type: Type.Optional(OneOf(INBOX_TYPES, "Default `agent`.")),
});
const UpdateInbox = Type.Object({
  displayName: Type.Optional(DisplayName),
  type: Type.Optional(OneOf(INBOX_TYPES)),
});

function show(inbox: Inbox) {
  return { ...inbox, createdAt: showTime(inbox.createdAt) };
}

interface Place {
  address: string;
  domain: Domain;
}

/** The address wanted and the project's domain it lies at. Throws 422 for a bad one, 404 for another's domain. */
async function placeOf(db: Db, senderId: string, body: Static<typeof CreateInbox>): Promise<Place> {
  if (body.address !== undefined) return placeOfAddress(db, senderId, body.address, body.domainId);
  if (body.localPart === undefined) throw invalid("address", "Required.", "missing_field");
  if (body.domainId === undefined) throw invalid("domainId", "Required.", "missing_field");
  const domain = await getDomain(db, senderId, body.domainId);
  if (domain === null) throw notFound("domain");
  return { domain, address: inboxAddress(`${body.localPart}@${domain.name}`, "localPart").address };
}

async function placeOfAddress(
  db: Db,
  senderId: string,
  text: string,
  domainId: string | undefined,
): Promise<Place> {
  const { address, domainName } = inboxAddress(text, "address");
  const domain = await findDomain(db, senderId, domainName);
  if (domain === null) throw invalid("address", `${domainName} is not a domain of this project.`);
  if (domainId !== undefined && domainId !== domain.id)
    throw invalid("domainId", "The address lies at another domain.");
  return { domain, address };
}

/** Local parts match case-insensitively, so an inbox has its address in lower case. */
function inboxAddress(text: string, param: string): { address: string; domainName: string } {
  const split = splitAddress(text);
  if (split === null) throw invalid(param, NO_ADDRESS, "invalid_email");
  // Mail to user+anything goes to user's inbox (RFC 5233): one with a plus of its own would never get any.
  if (split.local.includes("+"))
    throw invalid(
      param,
      "An inbox has no + in its address: it gets user+anything by itself.",
      "invalid_email",
    );
  return { address: `${inboxLocalPart(split.local)}@${split.domain}`, domainName: split.domain };
}

function duplicate(address: string): AppError {
  return new AppError("conflict", `There is an inbox ${address} already.`, {
    code: "duplicate",
    param: "address",
  });
}

/** `/v1/inboxes`. */
export function inboxRoutes({ db }: { db: Db }): Route[] {
  return [...collectionRoutes(db), ...itemRoutes(db)];
}

function collectionRoutes(db: Db): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/inboxes",
      operationId: "listInboxes",
      summary: "List all inboxes, newest first",
      scope: "inboxes:read",
      query: Type.Object({ domainId: Type.Optional(Type.String()) }),
      answers: { 200: Type.Object({ data: Type.Array(InboxSchema) }) },
      async handle({ senderId, query }) {
        return ok({ data: (await listInboxes(db, senderId, query.domainId ?? null)).map(show) });
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/inboxes",
      operationId: "createInbox",
      summary: "Make an inbox on a domain of the project",
      scope: "inboxes:write",
      body: CreateInbox,
      answers: { 201: InboxSchema },
      async handle({ senderId, body, now, record }) {
        const { address, domain } = await placeOf(db, senderId, body);
        const { type = "agent" } = body;
        // What is no Unicode text (half of a surrogate pair) would come back otherwise than it was answered.
        const displayName = body.displayName?.toWellFormed() ?? "";
        const owner = { senderId, domainId: domain.id };
        const inbox: Inbox = { id: newId("inb", now), ...owner, address, displayName, type, createdAt: now };
        const answer = created(show(inbox));
        try {
          await db.write([insertInbox(inbox), ...record(answer)]);
        } catch (error) {
          if (!(error instanceof ConstraintError)) throw error;
          if (error.foreignKey) throw notFound("domain");
          throw error.unique?.startsWith("inboxes.") === true ? duplicate(address) : error;
        }
        return answer;
      },
    }),
  ];
}

function itemRoutes(db: Db): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/inboxes/:id",
      operationId: "getInbox",
      summary: "Read an inbox",
      scope: "inboxes:read",
      answers: { 200: InboxSchema },
      async handle({ senderId, params }) {
        const inbox = await getInbox(db, senderId, params.id);
        if (inbox === null) throw notFound("inbox");
        return ok(show(inbox));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/inboxes/:id",
      operationId: "updateInbox",
      summary: "Change an inbox's name or type",
      scope: "inboxes:write",
      body: UpdateInbox,
      answers: { 200: InboxSchema },
      async handle({ senderId, params, body }) {
        const inbox = await updateInbox(db, senderId, params.id, body);
        if (inbox === null) throw notFound("inbox");
        return ok(show(inbox));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/inboxes/:id",
      operationId: "deleteInbox",
      summary: "Delete an inbox that never received mail",
      description:
        "Its threads go with it; its messages stay, with null for `inboxId` and `threadId`. Simulated mail does not keep it.",
      scope: "inboxes:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ senderId, params }) {
        if (await deleteInbox(db, senderId, params.id)) return noContent();
        if ((await getInbox(db, senderId, params.id)) === null) throw notFound("inbox");
        throw new AppError("conflict", "This inbox has received mail.", { code: "invalid_state" });
      },
    }),
  ];
}
