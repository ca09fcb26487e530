import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, notFound } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { seal } from "../../../core/crypto/secretbox.ts";
import { ConstraintError } from "../../../store/engine/client.ts";
import {
  deleteRoute,
  getRoute,
  insertRoute,
  listRoutes,
  type OutRoute,
  type RouteChanges,
  updateRoute,
} from "../../../store/projects/routes.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Name, Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../../routing/schemas.ts";
import type { Parts } from "../../routing/parts.ts";

const MAX_URL_CHARS = 2000;
/** Messages a second to a relay. */
const MIN_RATE = 0.01;
const MAX_RATE = 10_000;

const Pool = Type.String({
  maxLength: 32,
  pattern: "^[A-Za-z0-9-]+$",
  description: "Pool of `EGRESS` that its mail leaves from. For kind `mx`.",
  examples: ["bulk"],
});
const Rate = Type.Number({
  minimum: MIN_RATE,
  maximum: MAX_RATE,
  description: "Maximum number of messages a second that a worker sends to the relay. For kind `relay`.",
  examples: [14],
});

const OutRouteSchema = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    kind: OneOf(
      ["mx", "relay"],
      "`mx`: straight to the recipients' mail servers. `relay`: through a smarthost.",
    ),
    relayHost: Nullable(
      Type.String({ description: "Host and port of the relay.", examples: ["smtp.example.com:587"] }),
    ),
    pool: Nullable(Type.String()),
    ratePerSecond: Nullable(Type.Number()),
    createdAt: Timestamp,
  },
  { title: "Route" },
);

const CHANGEABLE = {
  relayUrl: Type.Optional(
    Type.String({
      maxLength: MAX_URL_CHARS,
      description:
        "`smtp(s)://user:pass@host:port`, as `SMTP_RELAY_URL`. It is stored sealed and never shown.",
      examples: ["smtps://user:secret@smtp.example.com:465"],
    }),
  ),
  pool: Type.Optional(Nullable(Pool)),
  ratePerSecond: Type.Optional(Nullable(Rate)),
};

const CreateRoute = Type.Object({
  name: Name,
  kind: Type.Union([Type.Literal("mx"), Type.Literal("relay")], {
    description: "`mx`: straight to the recipients' mail servers. `relay`: through a smarthost.",
    examples: ["relay"],
  }),
  ...CHANGEABLE,
});
const UpdateRoute = Type.Object({ name: Type.Optional(Name), ...CHANGEABLE });
type Changes = Static<typeof UpdateRoute>;

function show(route: OutRoute): Static<typeof OutRouteSchema> {
  const { accountId: _, sealedRelayUrl: _url, createdAt, ...shown } = route;
  return { ...shown, createdAt: showTime(createdAt) };
}

/** Returns the changes that a body asks of a route of that kind. */
function changesOf(deps: Parts, kind: OutRoute["kind"], body: Changes): RouteChanges {
  const { relayUrl, pool, ratePerSecond, name } = body;
  if (kind === "mx" && relayUrl !== undefined) throw invalid("relayUrl", "is for routes of kind `relay`.");
  if (kind === "mx" && typeof ratePerSecond === "number")
    throw invalid(
      "ratePerSecond",
      "is for routes of kind `relay`. The lane of each provider has its own rate.",
    );
  if (kind === "relay" && typeof pool === "string") throw invalid("pool", "is for routes of kind `mx`.");
  if (typeof pool === "string" && !deps.config.egress.some((egress) => egress.pool === pool))
    throw invalid("pool", "must be a pool that the setting EGRESS names.");
  return {
    ...(name === undefined ? {} : { name: name.toWellFormed() }),
    ...(pool === undefined ? {} : { pool }),
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    ...(relayUrl === undefined ? {} : relayOf(deps, relayUrl)),
  };
}

function relayOf({ boxKey, readRelayUrl }: Parts, url: string): RouteChanges {
  try {
    const { host, port } = readRelayUrl(url);
    const { username, password } = new URL(url);
    if ((username === "") !== (password === "")) throw new Error("half a login");
    return { relayHost: `${host}:${port}`, sealedRelayUrl: seal(boxKey, url) };
  } catch {
    throw invalid(
      "relayUrl",
      "must be smtp://host:port or smtps://host:port, with both a percent-encoded user and password or neither.",
    );
  }
}

function newRoute(
  deps: Parts,
  accountId: string,
  { kind, ...body }: Static<typeof CreateRoute>,
  now: number,
): OutRoute {
  if (kind === "relay" && body.relayUrl === undefined)
    throw invalid("relayUrl", "is required for a route of kind `relay`.");
  const empty = { sealedRelayUrl: null, relayHost: null, pool: null, ratePerSecond: null };
  const { name } = body;
  return {
    ...empty,
    id: newId("rte", now),
    accountId,
    kind,
    createdAt: now,
    ...changesOf(deps, kind, body),
    name,
  };
}

/** Runs a write that may set a name. Throws 409 if another route of the account has it. */
async function withName<Result>(write: () => Promise<Result>): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ConstraintError && error.unique?.startsWith("routes.") === true)
      throw new AppError("conflict", "A route with this name already exists.", {
        code: "duplicate",
        param: "name",
      });
    throw error;
  }
}

const COMMON = { accountWide: true } as const;

/** Returns the routes of `/v1/routes`. */
export function outRouteRoutes(deps: Parts): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps)];
}

function collectionRoutes(deps: Parts): Route[] {
  const { db } = deps;
  return [
    accountRoute({
      ...COMMON,
      method: "POST",
      path: "/v1/routes",
      operationId: "createRoute",
      stores: {},
      summary: "Create a route",
      description:
        "A way out for mail of projects that name it in `routeIds`: another relay, or another pool of our addresses. Each relay has its own lane. Requires an account-wide key.",
      scope: "senders:write",
      examples: {
        body: {
          name: "ses",
          kind: "relay",
          relayUrl: "smtps://user:secret@smtp.example.com:465",
          ratePerSecond: 14,
        },
      },
      body: CreateRoute,
      answers: { 201: OutRouteSchema },
      errors: ["conflict"],
      async handle({ principal, body, now, record }) {
        const route = newRoute(deps, principal.accountId, body, now);
        const answer = created(show(route));
        await withName(() => db.write([insertRoute(route), ...record(answer)]));
        return answer;
      },
    }),
    accountRoute({
      ...COMMON,
      method: "GET",
      path: "/v1/routes",
      operationId: "listRoutes",
      summary: "List routes, newest first",
      description: "The default route, which the settings make, is not listed. Requires an account-wide key.",
      scope: "senders:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(OutRouteSchema) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        return ok(answer(await listRoutes(db, principal.accountId, after, take), show, ({ id }) => id));
      },
    }),
  ];
}

function itemRoutes(deps: Parts): Route[] {
  const { db } = deps;
  const required = async (accountId: string, id: string): Promise<OutRoute> => {
    const route = await getRoute(db, accountId, id);
    if (route === null) throw notFound("route");
    return route;
  };
  return [
    accountRoute({
      ...COMMON,
      method: "GET",
      path: "/v1/routes/:id",
      operationId: "getRoute",
      summary: "Get a route",
      description: "Without the login of its relay. Requires an account-wide key.",
      scope: "senders:read",
      answers: { 200: OutRouteSchema },
      handle: async ({ principal, params }) => ok(show(await required(principal.accountId, params.id))),
    }),
    accountRoute({
      ...COMMON,
      method: "PATCH",
      path: "/v1/routes/:id",
      operationId: "updateRoute",
      summary: "Update a route",
      description:
        "Fields that are absent stay as they are. Mail that waits follows within 30 seconds. Requires an account-wide key.",
      scope: "senders:write",
      examples: { body: { ratePerSecond: 28 } },
      body: UpdateRoute,
      answers: { 200: OutRouteSchema },
      errors: ["conflict"],
      async handle({ principal, params, body }) {
        const { kind, id, accountId } = await required(principal.accountId, params.id);
        const changes = changesOf(deps, kind, body);
        const route = await withName(() => updateRoute(db, accountId, id, changes));
        if (route === null) throw notFound("route");
        return ok(show(route));
      },
    }),
    accountRoute({
      ...COMMON,
      method: "DELETE",
      path: "/v1/routes/:id",
      operationId: "deleteRoute",
      summary: "Delete a route",
      description: "Refused while a project names it. Requires an account-wide key.",
      scope: "senders:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ principal, params }) {
        const { id, accountId } = await required(principal.accountId, params.id);
        if (await deleteRoute(db, accountId, id)) return noContent();
        throw new AppError("conflict", "A project names this route. Take it out of its `routeIds` first.", {
          code: "invalid_state",
        });
      },
    }),
  ];
}
