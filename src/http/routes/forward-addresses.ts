import { type Static, Type } from "@sinclair/typebox";
import type { Key } from "../../core/crypto/key-ring.ts";
import { existing, notFound } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time/units.ts";
import {
  addForwardAddress,
  type AskDeps,
  confirmByLink,
  FORWARD_LINK_MS,
  FORWARD_PATH,
  openForwardLink,
} from "../../flows/rules/forward-addresses.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import {
  type ForwardAddress,
  getForwardAddress,
  listForwardAddresses,
  MAX_FORWARD_ADDRESSES,
  MAX_LINKS_OF_PROJECT,
  MAX_LINKS_TO_ADDRESS,
  removeForwardAddress,
} from "../../store/rules/forward-addresses.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { mailedLink } from "../routing/mailed-link.ts";
import { openRoute, projectRoute, type Route } from "../routing/route.ts";
import { EMAIL, Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../routing/schemas.ts";
import { linkPage } from "../views/link-page.ts";

const AddressView = Type.Object(
  {
    id: Type.String(),
    email: Type.String(EMAIL),
    status: OneOf(
      ["pending", "confirmed"],
      "`pending`: its owner has not confirmed it, and nothing is forwarded.",
    ),
    linkEndsAt: Type.Union([Timestamp, Type.Null()], {
      description: "When the mailed link stops working. Null: the address is confirmed.",
    }),
    confirmedAt: Nullable(Timestamp),
    createdAt: Timestamp,
  },
  { title: "ForwardAddress" },
);

/** Returns a forward address as the API shows it. */
export function showForwardAddress({
  id,
  email,
  confirmedAt,
  askedAt,
  createdAt,
}: ForwardAddress): Static<typeof AddressView> {
  return {
    id,
    email,
    status: confirmedAt === null ? "pending" : "confirmed",
    linkEndsAt: confirmedAt === null ? showTime(askedAt + FORWARD_LINK_MS) : null,
    confirmedAt: showTime(confirmedAt),
    createdAt: showTime(createdAt),
  };
}

/** Returns the routes of `/v1/forward-addresses`, and that of the links which confirm them. */
export function forwardAddressRoutes(deps: AskDeps): Route[] {
  return [askRoute(deps), ...itemRoutes(deps), ...linkRoutes(deps)];
}

function askRoute(deps: AskDeps): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/forward-addresses",
    operationId: "createForwardAddress",
    stores: {},
    summary: "Ask the owner of an address whether mail may be forwarded there",
    description: `Mails a link that works for ${FORWARD_LINK_MS / DAY_MS} days. Rules can forward to the address once its owner has confirmed it. Asking again mails a new link, unless it is confirmed. An address gets at most ${MAX_LINKS_TO_ADDRESS} links a UTC day, and a project mails ${MAX_LINKS_OF_PROJECT}. A project has at most ${MAX_FORWARD_ADDRESSES} forward addresses.`,
    scope: "inboxes:write",
    body: Type.Object({ email: Type.String(EMAIL) }, { title: "NewForwardAddress" }),
    answers: { 201: AddressView },
    errors: ["rate_limited"],
    async handle({ project, body, record }) {
      const answer = (address: ForwardAddress) => created(showForwardAddress(address));
      return answer(await addForwardAddress(deps, project, body.email, (address) => record(answer(address))));
    },
  });
}

function itemRoutes({ db }: { db: Db }): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/forward-addresses",
      operationId: "listForwardAddresses",
      summary: "List the addresses that rules may forward to",
      description: "Newest first, with those that are not confirmed yet.",
      scope: "inboxes:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(AddressView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        return ok(
          answer(await listForwardAddresses(db, senderId, after, take), showForwardAddress, ({ id }) => id),
        );
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/forward-addresses/:id",
      operationId: "getForwardAddress",
      summary: "Get a forward address",
      description: "With whether its owner has confirmed it.",
      scope: "inboxes:read",
      answers: { 200: AddressView },
      async handle({ senderId, params }) {
        return ok(
          showForwardAddress(existing("forward address", await getForwardAddress(db, senderId, params.id))),
        );
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/forward-addresses/:id",
      operationId: "deleteForwardAddress",
      summary: "Forward nothing more to an address",
      description: "Its link ends at once. Rules that forward there stay, and forward nothing.",
      scope: "inboxes:write",
      answers: { 204: null },
      async handle({ senderId, params, now }) {
        if (!(await removeForwardAddress(db, senderId, params.id, now))) throw notFound("forward address");
        return noContent();
      },
    }),
  ];
}

/** Returns the routes of the link that confirms an address. */
function linkRoutes(deps: Store & { linkKey: Key }): Route[] {
  const { common, opened } = mailedLink(FORWARD_PATH, (token) => openForwardLink(deps, token));
  return [
    openRoute({
      ...common,
      method: "GET",
      operationId: "showForwardAddress",
      summary: "Show what the link of a forward address confirms",
      description:
        "The page has a button. Opening it changes nothing, because link checkers open every link.",
      async handle({ params }) {
        const { address, projectName } = await opened(params.token);
        if (address.confirmedAt !== null) return confirmed(address);
        const what = `Mail that the project “${Bun.escapeHTML(projectName)}” receives may be forwarded to ${Bun.escapeHTML(address.email)}.`;
        return linkPage(
          "Forward mail to this address?",
          `<p>${what}</p><form method="post"><button>Confirm</button></form>`,
        );
      },
    }),
    openRoute({
      ...common,
      method: "POST",
      operationId: "confirmForwardAddress",
      summary: "Confirm a forward address by its link",
      description: "The audit trail names the address. A second confirmation changes nothing.",
      async handle({ params, ip, requestId }) {
        const { address } = await opened(params.token);
        await confirmByLink(deps, address, { ip, requestId });
        return confirmed(address);
      },
    }),
  ];
}

function confirmed({ email }: ForwardAddress) {
  return linkPage("Confirmed", `<p>Mail may be forwarded to ${Bun.escapeHTML(email)}.</p>`);
}
