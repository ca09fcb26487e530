import { loadMcp, mcpServer } from "./server.ts";
import type { CallApi } from "./tool.ts";

/** The caller of a request over HTTP. */
export interface McpCaller {
  call: CallApi;
  /** The scopes of the key that `call` uses. */
  scopes: readonly string[];
}

/**
 * Answers one message over streamable HTTP, without a session. The answer is complete JSON, because the bytes of
 * the library's own streams would not be counted.
 * @param body the parsed message, which is no batch and opens no stream
 */
export async function answerOverHttp(caller: McpCaller, headers: Headers, body: unknown): Promise<Response> {
  const library = await loadMcp();
  const server = () => mcpServer(library, caller.call, caller.scopes);
  const request = new Request("http://localhost/mcp", { method: "POST", headers });
  const parsed = { parsedBody: body ?? null };
  if (!(await library.isLegacyRequest(request, parsed.parsedBody)))
    return library.createMcpHandler(server, { legacy: "reject" }).fetch(request, parsed);
  // Clients of a protocol before 2026: the library's handler would answer these with a stream.
  const transport = new library.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const own = server();
  await own.connect(transport);
  try {
    return await transport.handleRequest(request, parsed);
  } finally {
    await own.close();
  }
}
