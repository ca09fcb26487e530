import { exampleId } from "../../openapi/examples.ts";
import { type Static, Type } from "@sinclair/typebox";
import { ADDRESS_EXPECTED, ANY_LOCAL_PART, inboxLocalPart, splitAddress } from "../../../core/addresses.ts";
import { AppError, invalid, notFound, existing } from "../../../core/errors.ts";
import { ACCEPTS } from "../../../core/messages/listed-sender.ts";
import { withinInboxes } from "../../../core/key-bounds.ts";
import { newId } from "../../../core/ids.ts";
import { ConstraintError, type Db } from "../../../store/engine/client.ts";
import { requireInWildcard } from "../../../flows/domains/wildcard.ts";
import { isBroken } from "../../../store/engine/guards.ts";
import { requireWildcard } from "../../../store/domains/wildcards.ts";
import { domainForInbox } from "../../../flows/domains/inbox-domain.ts";
import { type Domain, getDomain } from "../../../store/domains/domains.ts";
import { deleteInbox } from "../../../store/threads/inbox-removal.ts";
import {
  getInbox,
  INBOX_TYPES,
  type Inbox,
  insertInbox,
  listInboxes,
  updateInbox,
} from "../../../store/threads/inboxes.ts";
import type { Project } from "../../../store/projects/projects.ts";
import { created, noContent, ok, type Warning } from "../../routing/answer.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import {
  EMAIL,
  MAX_NAME_CHARS,
  ONE_LINE,
  OneOf,
  showTime,
  Timestamp,
  WITHOUT_NUL,
} from "../../routing/schemas.ts";
import { listedSenderRoutes } from "./listed-senders.ts";
import type { Checking } from "../../../flows/domains/checking.ts";

/** Maximum characters of a signature. */
const MAX_SIGNATURE_CHARS = 2000;

const AcceptView = OneOf(
  ACCEPTS,
  "Whose mail the inbox takes; that of others, and of blocked senders, gets 550 and is recorded as `inbound_rejected`. `authenticated`: DMARC proves the author. `allowed`: the author is proven and on an allow list.",
);
const InboxSchema = Type.Object(
  {
    id: Type.String(),
    senderId: Type.String(),
    domainId: Type.String(),
    address: Type.String(),
    displayName: Type.String(),
    type: OneOf(INBOX_TYPES),
    accept: AcceptView,
    signature: Type.String({
      description: "Text that the dashboard puts below a message.",
      examples: ["Ana, Acme support"],
    }),
    createdAt: Timestamp,
  },
  { title: "Inbox" },
);

const DisplayName = Type.String({ maxLength: MAX_NAME_CHARS, ...ONE_LINE, examples: ["Support"] });
const Signature = Type.String({
  maxLength: MAX_SIGNATURE_CHARS,
  ...WITHOUT_NUL,
  description: "The dashboard puts it below a message. Sends of the API do not get it.",
  examples: ["Ana, Acme support"],
});
const CreateInbox = Type.Object({
  address: Type.Optional(
    Type.String({
      ...EMAIL,
      description:
        "Full address, at a domain of the project. In capture mode also at `inbox.` + service domain. `*@example.com` is a catch-all: it gets the mail for every address of the domain that is no other mailbox.",
    }),
  ),
  localPart: Type.Optional(
    Type.String({
      description: "Local part, together with `domainId`. Use it in place of `address`.",
      examples: ["support"],
    }),
  ),
  domainId: Type.Optional(Type.String({ examples: ["dom_01hzy8"] })),
  displayName: Type.Optional(DisplayName),
  type: Type.Optional(OneOf(INBOX_TYPES, "`agent` if absent.")),
  accept: Type.Optional(AcceptView),
  signature: Type.Optional(Signature),
});
const UpdateInbox = Type.Object({
  displayName: Type.Optional(DisplayName),
  type: Type.Optional(OneOf(INBOX_TYPES)),
  accept: Type.Optional(AcceptView),
  signature: Type.Optional(Signature),
});

function show(inbox: Inbox) {
  return { ...inbox, createdAt: showTime(inbox.createdAt) };
}

interface InboxLocation {
  address: string;
  domain: Domain;
}

/** Returns the address and its domain. Throws 422 for a bad address, and 404 for a domain of another project. */
async function locateInbox(
  deps: Checking,
  project: Project,
  body: Static<typeof CreateInbox>,
  now: number,
): Promise<InboxLocation> {
  if (body.address !== undefined) return locateByAddress(deps, project, body.address, body.domainId, now);
  if (body.localPart === undefined)
    throw invalid("address", "is required, unless localPart and domainId are given.", "missing_field");
  if (body.domainId === undefined)
    throw invalid("domainId", "is required together with localPart.", "missing_field");
  const domain = existing("domain", await getDomain(deps.db, project.id, body.domainId));
  return { domain, address: inboxAddress(`${body.localPart}@${domain.name}`, "localPart").address };
}

async function locateByAddress(
  deps: Checking,
  project: Project,
  text: string,
  domainId: string | undefined,
  now: number,
): Promise<InboxLocation> {
  const { address, domainName } = inboxAddress(text, "address");
  const domain = await domainForInbox(deps, project, domainName, now);
  if (domain === null)
    throw invalid(
      "address",
      `must be at a domain of this project. ${domainName} is not one: add it with POST /v1/domains.`,
    );
  if (domainId !== undefined && domainId !== domain.id)
    throw invalid("domainId", "must be the id of the domain in the address.");
  if (domain.name !== domainName) await requireInWildcard(deps, domain, domainName);
  return { domain, address };
}

/** Returns the address in lower case, because local parts match in any case. */
function inboxAddress(text: string, param: string): { address: string; domainName: string } {
  const split = splitAddress(text);
  if (split === null) throw invalid(param, ADDRESS_EXPECTED, "invalid_email");
  // Mail to user+anything goes to the inbox of user (RFC 5233), so an inbox with a plus would never get any.
  if (split.local.includes("+"))
    throw invalid(
      param,
      "must not contain a plus sign. The inbox user also receives mail to user+anything.",
      "invalid_email",
    );
  if (split.local.includes(ANY_LOCAL_PART) && split.local !== ANY_LOCAL_PART)
    throw invalid(
      param,
      'must have no asterisk next to other characters. Alone, as in "*@example.com", it stands for every address of the domain.',
      "invalid_email",
    );
  return { address: `${inboxLocalPart(split.local)}@${split.domain}`, domainName: split.domain };
}

function duplicate(address: string): AppError {
  return new AppError("conflict", `The inbox ${address} already exists.`, {
    code: "duplicate",
    param: "address",
  });
}

/** Returns the routes of `/v1/inboxes`. */
export function inboxRoutes(deps: Checking): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps.db), ...listedSenderRoutes(deps)];
}

/** Returns the warning that mail for the inbox is refused; none if its domain receives. */
function warningsOf({ id, name, status, receiving }: Domain): Warning[] {
  if (receiving) return [];
  const verify = status === "verified" ? "" : `POST /v1/domains/${id}/verify, then `;
  const how = `${verify}PATCH /v1/domains/${id}/receiving {"enabled":true}`;
  return [{ param: "address", message: `${name} does not receive mail yet. Switch it on with ${how}.` }];
}

function collectionRoutes(deps: Checking): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/inboxes",
      operationId: "listInboxes",
      inboxes: "handler",
      summary: "List inboxes, newest first",
      description: "All inboxes of the project, in one answer without pages.",
      scope: "inboxes:read",
      query: Type.Object({ domainId: Type.Optional(Type.String({ examples: ["dom_01hzy8"] })) }),
      answers: { 200: Type.Object({ data: Type.Array(InboxSchema) }) },
      async handle({ senderId, principal: { bounds }, query }) {
        const inboxes = await listInboxes(db, senderId, query.domainId ?? null);
        return ok({ data: inboxes.filter(({ id }) => withinInboxes(bounds, id)).map(show) });
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/inboxes",
      operationId: "createInbox",
      stores: { adds: ["inboxes"] },
      summary: "Create an inbox",
      description:
        "Give the whole `address`, or `localPart` and `domainId`. The domain must belong to the project.",
      scope: "inboxes:write",
      examples: { body: { localPart: "support", domainId: exampleId("dom"), displayName: "Support" } },
      body: CreateInbox,
      answers: { 201: InboxSchema },
      async handle({ senderId, project, body, now, record }) {
        const { address, domain } = await locateInbox(deps, project, body, now);
        const { type = "agent", accept = "anyone" } = body;
        // The database replaces half of a surrogate pair, so replace it before answering.
        const displayName = body.displayName?.toWellFormed() ?? "";
        const owner = { senderId, domainId: domain.id };
        const inbox: Inbox = {
          id: newId("inb", now),
          ...owner,
          address,
          displayName,
          type,
          accept,
          signature: body.signature?.toWellFormed() ?? "",
          createdAt: now,
        };
        const answer = { ...created(show(inbox)), warnings: warningsOf(domain) };
        try {
          const below = address.endsWith(`@${domain.name}`) ? [] : [requireWildcard(domain.id)];
          await db.write([...below, insertInbox(inbox), ...record(answer)]);
        } catch (error) {
          if (isBroken(error, "not_wildcard")) throw notFound("domain");
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
      inboxes: "inbox",
      summary: "Get an inbox",
      description: "Its address, display name and type.",
      scope: "inboxes:read",
      answers: { 200: InboxSchema },
      async handle({ senderId, params }) {
        return ok(show(existing("inbox", await getInbox(db, senderId, params.id))));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/inboxes/:id",
      operationId: "updateInbox",
      summary: "Update an inbox",
      description: "Fields that are absent stay as they are. The address cannot change.",
      scope: "inboxes:write",
      body: UpdateInbox,
      answers: { 200: InboxSchema },
      async handle({ senderId, params, body }) {
        return ok(show(existing("inbox", await updateInbox(db, senderId, params.id, body))));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/inboxes/:id",
      operationId: "deleteInbox",
      summary: "Delete an inbox that never received mail",
      description:
        "Deletes its threads too. Its messages stay, with null for `inboxId` and `threadId`. Simulated mail does not prevent the deletion.",
      scope: "inboxes:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ senderId, params }) {
        if (await deleteInbox(db, senderId, params.id)) return noContent();
        if ((await getInbox(db, senderId, params.id)) === null) throw notFound("inbox");
        throw new AppError("conflict", "This inbox has received mail, so it cannot be deleted.", {
          code: "invalid_state",
        });
      },
    }),
  ];
}
