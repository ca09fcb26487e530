import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, existing } from "../../../core/errors.ts";
import { newId } from "../../../core/ids.ts";
import { DAY_MS } from "../../../core/time/units.ts";
import { seal } from "../../../core/crypto/secretbox.ts";
import { ConstraintError } from "../../../store/engine/client.ts";
import {
  DEFAULT_ROUTE,
  deleteRoute,
  getRoute,
  insertRoute,
  listRoutes,
  type OutRoute,
  type RouteChanges,
  type RouteWarmUp,
  updateRoute,
} from "../../../store/projects/routes.ts";
import { created, noContent, ok } from "../../routing/answer.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { PAGE_QUERY, PageOf } from "../../routing/schemas.ts";
import type { Parts } from "../../routing/parts.ts";
import { CreateRoute, OutRouteView, type ShownRoute, showRoute, UpdateRoute } from "../../views/out-route.ts";
import { sealProof } from "../../../flows/relays/proof.ts";
import { requireRoute } from "../../views/route-ids.ts";

type Changes = Static<typeof UpdateRoute>;

/** Returns the route that the settings make, as if it was stored. */
function defaultRoute({ config, readRelayUrl }: Parts): ShownRoute {
  const { delivery: kind, smtpRelayUrl } = config;
  const { host, port } = kind === "relay" ? readRelayUrl(smtpRelayUrl ?? "") : { host: null, port: 0 };
  return {
    id: DEFAULT_ROUTE,
    name: DEFAULT_ROUTE,
    kind,
    relayHost: host === null ? null : `${host}:${port}`,
    pool: null,
    ratePerSecond: null,
    warmUp: null,
    eventsProvider: null,
    createdAt: null,
  };
}

/** Throws 409 for the default route. */
function refuseDefault(id: string, done: "changed" | "deleted"): void {
  if (id !== DEFAULT_ROUTE) return;
  throw new AppError(
    "conflict",
    `The settings DELIVERY and SMTP_RELAY_URL make the route \`default\`, so it cannot be ${done} here. Change those settings, or create another route.`,
    { code: "invalid_state" },
  );
}

/** Returns the changes that a body asks of a route of that kind. */
function changesOf(
  deps: Parts,
  { kind, warmUp: before }: Pick<OutRoute, "kind" | "warmUp">,
  body: Changes,
  now: number,
): { changes: RouteChanges; secret: string | null } {
  const { relayUrl, pool, ratePerSecond, warmUp, events, name } = body;
  if (kind === "mx" && relayUrl !== undefined) throw invalid("relayUrl", "is for routes of kind `relay`.");
  if (kind === "mx" && typeof ratePerSecond === "number")
    throw invalid(
      "ratePerSecond",
      "is for routes of kind `relay`. The lane of each provider has its own rate.",
    );
  if (kind === "mx" && isSet(events)) throw invalid("events", "is for routes of kind `relay`.");
  if (kind === "relay" && typeof pool === "string") throw invalid("pool", "is for routes of kind `mx`.");
  if (typeof pool === "string" && !deps.config.egress.some((egress) => egress.pool === pool))
    throw invalid("pool", "must be a pool that the setting EGRESS names.");
  if (kind === "mx" && deps.config.egress.length === 0 && isSet(warmUp))
    throw invalid("warmUp", "needs an address in the setting EGRESS, because addresses warm up.");
  const proof = isSet(events) ? sealProof(events, deps.boxKey) : null;
  const taken = { eventsProvider: events?.provider ?? null, sealedProof: proof?.sealed ?? null };
  const changes = {
    ...(name === undefined ? {} : { name: name.toWellFormed() }),
    ...(pool === undefined ? {} : { pool }),
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    ...(relayUrl === undefined ? {} : relayOf(deps, relayUrl)),
    ...(warmUp === undefined ? {} : { warmUp: isSet(warmUp) ? warmUpOf(warmUp, before, now) : null }),
    ...(events === undefined ? {} : taken),
  };
  return { changes, secret: proof?.secret ?? null };
}

function isSet<Value>(value: Value | null | undefined): value is Value {
  return value !== null && value !== undefined;
}

/** Returns a warm-up that begins now, or has begun. */
function warmUpOf(
  { targetPerDay: target, overflowRouteId = null }: NonNullable<Changes["warmUp"]>,
  before: RouteWarmUp | null,
  now: number,
): RouteWarmUp {
  return { from: before?.from ?? Math.floor(now / DAY_MS), target, overflowRouteId };
}

/** Throws 422 if a warm-up overflows into the route itself, or into one that the account lacks. */
async function requireOverflow({ db }: Parts, route: Pick<OutRoute, "id" | "accountId" | "warmUp">) {
  const overflow = route.warmUp?.overflowRouteId ?? null;
  if (overflow === null) return;
  const param = "warmUp.overflowRouteId";
  if (overflow === route.id) throw invalid(param, "must be another route.");
  await requireRoute(db, route.accountId, overflow, param);
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
): { route: OutRoute; secret: string | null } {
  if (kind === "relay" && body.relayUrl === undefined)
    throw invalid("relayUrl", "is required for a route of kind `relay`.");
  const { changes, secret } = changesOf(deps, { kind, warmUp: null }, body, now);
  const route = {
    id: newId("rte", now),
    accountId,
    kind,
    createdAt: now,
    sealedRelayUrl: null,
    relayHost: null,
    pool: null,
    ratePerSecond: null,
    warmUp: null,
    eventsProvider: null,
    sealedProof: null,
    ...changes,
    name: body.name,
  };
  return { route, secret };
}

/** Runs a write that may set a name. Throws 409 if another route of the account has it. */
async function withName<Result>(name: string | undefined, write: () => Promise<Result>): Promise<Result> {
  const taken = () =>
    new AppError("conflict", "A route with this name already exists.", { code: "duplicate", param: "name" });
  if (name === DEFAULT_ROUTE) throw taken();
  try {
    return await write();
  } catch (error) {
    throw error instanceof ConstraintError && error.unique?.startsWith("routes.") === true ? taken() : error;
  }
}

const COMMON = { accountWide: true } as const;

/** Returns the routes of `/v1/routes`. */
export function outRouteRoutes(deps: Parts): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps)];
}

function collectionRoutes(deps: Parts): Route[] {
  const { db, config } = deps;
  return [
    accountRoute({
      ...COMMON,
      method: "POST",
      path: "/v1/routes",
      operationId: "createRoute",
      stores: {},
      secretAnswer: true,
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
      answers: { 201: OutRouteView },
      errors: ["conflict"],
      async handle({ principal, body, now, record }) {
        const { route, secret } = newRoute(deps, principal.accountId, body, now);
        await requireOverflow(deps, route);
        const answer = created(showRoute(route, config.publicUrl, secret));
        await withName(route.name, () => db.write([insertRoute(route), ...record(answer)]));
        return answer;
      },
    }),
    accountRoute({
      ...COMMON,
      method: "GET",
      path: "/v1/routes",
      operationId: "listRoutes",
      summary: "List routes, newest first",
      description:
        "The last one is `default`, which the settings DELIVERY and SMTP_RELAY_URL make. Requires an account-wide key.",
      scope: "senders:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(OutRouteView) },
      async handle({ principal, page }) {
        const { after, take, answer } = page();
        const stored: ShownRoute[] = await listRoutes(db, principal.accountId, after, take);
        const all = stored.length < take ? [...stored, defaultRoute(deps)] : stored;
        const show = (route: ShownRoute) => showRoute(route, config.publicUrl);
        return ok(answer(all, show, ({ id }) => id));
      },
    }),
  ];
}

function itemRoutes(deps: Parts): Route[] {
  const { db, config } = deps;
  const required = async (accountId: string, id: string): Promise<OutRoute> => {
    return existing("route", await getRoute(db, accountId, id));
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
      answers: { 200: OutRouteView },
      async handle({ principal, params: { id } }) {
        if (id === DEFAULT_ROUTE) return ok(showRoute(defaultRoute(deps), config.publicUrl));
        return ok(showRoute(await required(principal.accountId, id), config.publicUrl));
      },
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
      answers: { 200: OutRouteView },
      errors: ["conflict"],
      async handle({ principal, params, body, now }) {
        refuseDefault(params.id, "changed");
        const before = await required(principal.accountId, params.id);
        const { id, accountId } = before;
        const { changes, secret } = changesOf(deps, before, body, now);
        await requireOverflow(deps, { ...before, ...changes });
        const changed = await withName(changes.name, () => updateRoute(db, accountId, id, changes));
        return ok(showRoute(existing("route", changed), config.publicUrl, secret));
      },
    }),
    accountRoute({
      ...COMMON,
      method: "DELETE",
      path: "/v1/routes/:id",
      operationId: "deleteRoute",
      summary: "Delete a route",
      description:
        "Refused while a project, a domain, an unsent broadcast or the overflow of a warm-up names it. Requires an account-wide key.",
      scope: "senders:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ principal, params }) {
        refuseDefault(params.id, "deleted");
        const { id, accountId } = await required(principal.accountId, params.id);
        if (await deleteRoute(db, accountId, id)) return noContent();
        throw new AppError(
          "conflict",
          "A project, domain, unsent broadcast or warm-up names this route. Take it out of `routeIds` and `warmUp` first.",
          { code: "invalid_state" },
        );
      },
    }),
  ];
}
