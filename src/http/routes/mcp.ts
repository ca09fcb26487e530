import { Type } from "@sinclair/typebox";
import { isLarger, isObject } from "../../core/validation.ts";
import { answerOverHttp, type McpCaller } from "../../mcp/http.ts";
import type { CallApi } from "../../mcp/tool.ts";
import { type Answer, JSON_TYPE, later, raw } from "../routing/answer.ts";
import { type BudgetLimits, createBudget, type Reservation } from "../body/budget.ts";
import { MethodNotAllowed } from "../routing/errors.ts";
import { accountRoute, type Route } from "../routing/route.ts";

/** Largest request, bytes: a message with its bodies, without attachments. */
export const MAX_MCP_BODY_BYTES = 5 * 1024 * 1024;
/** Octets counted for a call in addition to its body: its own server, and the tools. */
export const CALL_OCTETS = 256 * 1024;
/** Memory of the calls that have no answer yet. One of them may wait a minute for a message. */
export const CALL_LIMITS: BudgetLimits = {
  total: 256 * 1024 * 1024,
  perOwner: 64 * 1024 * 1024,
  refusal: "Too many MCP calls wait for their answers. Try again.",
};
/** Maximum bytes of a message without the arguments of its tool. The library checks all of it at once. */
export const MAX_FRAME_BYTES = 64 * 1024;
/** Headers of the agent's request that its calls to the API repeat. */
const FORWARDED = ["authorization", "x-service-product", "x-service-sender"];

/** Codes of JSON-RPC 2.0 §5.1. */
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;

export interface McpDeps {
  /** Answers a request to the API, with all checks. */
  fetch: (request: Request) => Promise<Response>;
}

/** Returns the routes of `/mcp`: MCP over streamable HTTP, without sessions. The agent's key is the request's. */
export function mcpRoutes(deps: McpDeps): Route[] {
  const reserve = createBudget(CALL_LIMITS);
  const call = accountRoute({
    ...MCP,
    method: "POST",
    operationId: "mcp POST",
    inboxes: "handler",
    body: Type.Any(),
    bodyCheckedBy: "handler",
    bodyLimit: MAX_MCP_BODY_BYTES,
    handle({ request, body, principal }): Answer {
      const refusal = refusalOf(body);
      if (refusal !== null) return refusal;
      const owner = principal.senderId ?? principal.accountId;
      const reservation = reserve(owner);
      // A body of unknown length counts as the largest.
      const octets = Number(request.headers.get("content-length") ?? MAX_MCP_BODY_BYTES);
      reservation.take(CALL_OCTETS + octets);
      const caller = { call: callerOf(deps, request), scopes: principal.scopes };
      return later({ owner, ...whenMade(reservation, () => answerOf(caller, request, body)) });
    },
  });
  const others = (["GET", "DELETE"] as const).map((method) =>
    accountRoute({
      ...MCP,
      method,
      operationId: `mcp ${method}`,
      handle() {
        throw new MethodNotAllowed(method, ["POST"]);
      },
    }),
  );
  return [call, ...others];
}

const MCP = {
  path: "/mcp",
  summary: "Serve tools to agents (Model Context Protocol)",
  scope: null,
  undocumented: true,
  ownOrigin: true,
  answers: { 200: Type.Any() },
} as const;

/** Returns the refusal of what would answer without a bound, or null. */
function refusalOf(body: unknown): Answer | null {
  // Removed from MCP in 2025-06-18. One small request could ask for the largest message a hundred times.
  if (Array.isArray(body))
    return rpcError(400, null, INVALID_REQUEST, "Send each message in a separate request, not as a batch.");
  const { id = null, method, params } = (body ?? {}) as Record<string, unknown>;
  const { arguments: _args = null, ...rest } = isObject(params) ? params : { params };
  if (isLarger({ ...(body as object), params: rest }, MAX_FRAME_BYTES))
    return rpcError(
      400,
      null,
      INVALID_REQUEST,
      `A message has at most ${MAX_FRAME_BYTES} bytes without arguments.`,
    );
  // Nothing that a client could subscribe to changes, and the stream would never end.
  if (method === "subscriptions/listen")
    return rpcError(200, id, METHOD_NOT_FOUND, "There are no subscriptions.");
  return null;
}

function rpcError(status: number, id: unknown, code: number, message: string): Answer {
  return { status, body: { jsonrpc: "2.0", id, error: { code, message } } };
}

/** Begins to make an answer. It holds its memory until then. The answer has its own budget and time. */
function whenMade(reservation: Reservation, make: () => Promise<Answer>) {
  const made = make().finally(() => reservation.leave());
  const ended = made.then(
    () => undefined,
    () => undefined,
  );
  return { ready: () => ended, make: () => made };
}

async function answerOf(caller: McpCaller, { headers }: Request, body: unknown): Promise<Answer> {
  const response = await answerOverHttp(caller, headers, body);
  const { status } = response;
  const type = response.headers.get("content-type") ?? JSON_TYPE;
  const bytes = new Uint8Array(await response.arrayBuffer());
  return bytes.length === 0 ? { status, body: undefined } : { ...raw(bytes, type), status };
}

/** Returns calls to the API with the key of the agent's request. */
function callerOf({ fetch }: McpDeps, { headers: given, signal }: Request): CallApi {
  const own = FORWARDED.flatMap((name): [string, string][] => {
    const value = given.get(name);
    return value === null ? [] : [[name, value]];
  });
  return async ({ method, path, body }) => {
    const { idempotencyKey, ...fields } = body ?? {};
    const headers = new Headers(own);
    if (body !== undefined) headers.set("content-type", "application/json");
    if (idempotencyKey !== undefined) headers.set("idempotency-key", String(idempotencyKey));
    const sent = body === undefined ? {} : { body: JSON.stringify(fields) };
    const response = await fetch(
      new Request(`http://localhost${path}`, { method, headers, signal, ...sent }),
    );
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
}
