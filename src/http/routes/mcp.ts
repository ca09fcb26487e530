import { Type } from "@sinclair/typebox";
import { loadMcp, mcpServer } from "../../mcp/server.ts";
import type { CallApi } from "../../mcp/tool.ts";
import type { Answer } from "../routing/answer.ts";
import { accountRoute, type Method, type Route } from "../routing/route.ts";

/** Largest request, bytes: a message with its bodies, without attachments. */
const MAX_MCP_BODY_BYTES = 5 * 1024 * 1024;
/** Headers of the agent's request that its calls to the API repeat. */
const FORWARDED = ["authorization", "x-service-product", "x-service-sender"];

export interface McpDeps {
  /** Answers a request to the API, with all checks. */
  fetch: (request: Request) => Promise<Response>;
}

/** Returns the routes of `/mcp`: MCP over streamable HTTP, without sessions. The agent's key is the request's. */
export function mcpRoutes(deps: McpDeps): Route[] {
  return (["POST", "GET", "DELETE"] as const).map((method) => mcpRoute(deps, method));
}

function mcpRoute(deps: McpDeps, method: Method): Route {
  return accountRoute({
    method,
    path: "/mcp",
    operationId: `mcp ${method}`,
    summary: "Serve tools to agents (Model Context Protocol)",
    scope: null,
    undocumented: true,
    ...(method === "POST"
      ? { body: Type.Any(), bodyCheckedBy: "handler", bodyLimit: MAX_MCP_BODY_BYTES }
      : {}),
    answers: { 200: Type.Any() },
    async handle({ request, body, principal }): Promise<Answer> {
      const library = await loadMcp();
      const call = callerOf(deps, request.headers);
      const handler = library.createMcpHandler(() => mcpServer(library, call, principal.scopes));
      // The body has been read and checked, so the library gets it parsed.
      const bare = new Request("http://localhost/mcp", { method, headers: request.headers });
      const answer = await handler.fetch(bare, method === "POST" ? { parsedBody: body } : {});
      const headers = Object.fromEntries(answer.headers.entries());
      return { status: answer.status, body: answer.body ?? undefined, headers };
    },
  });
}

/** Returns calls to the API with the key of the agent's request. */
function callerOf({ fetch }: McpDeps, given: Headers): CallApi {
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
    const response = await fetch(new Request(`http://localhost${path}`, { method, headers, ...sent }));
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
}
