import { loadMcp, mcpServer } from "./server.ts";
import type { CallApi } from "./tool.ts";

/**
 * Serves the tools on this process's standard input and output, until its input is closed.
 * @param scopes the scopes of the key that `call` uses
 */
export async function serveOnStdio(call: CallApi, scopes: readonly string[]): Promise<void> {
  const library = await loadMcp();
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  const closed = new Promise<void>((resolve) => {
    process.stdin.once("end", resolve);
    process.stdin.once("close", resolve);
  });
  const served = serveStdio(() => mcpServer(library, call, scopes));
  await closed;
  await served.close();
}
