import { serveOnStdio } from "../mcp/stdio.ts";
import type { CallApi } from "../mcp/tool.ts";
import { apiWithKey } from "./support/api-access.ts";
import { type Api, callApi, requestApi } from "./support/api-client.ts";
import { type Context, defineCommand } from "./support/command.ts";
import { EX_OK, usage } from "./support/exit.ts";

/** Time for one tool, milliseconds. The longest wait for a message is a minute. */
const TOOL_TIMEOUT_MS = 75_000;

/** Serves the tools for agents on standard input and output. */
export const mcp = defineCommand({
  name: "mcp",
  flags: {
    sender: {
      type: "string",
      value: "PROJECT",
      help: "project of an account-wide key: its id or external id",
    },
  },
  plain: true,
  about: `Serves tools for agents by the Model Context Protocol, on standard input and output. It calls the service at
POSTRIDER_URL (default: this machine's) with the key in POSTRIDER_API_KEY. The key's scopes decide which tools
there are. It ends when standard input is closed.`,
  example: `postrider keys create --name agent --sender default --scopes emails:send,emails:read --out agent.key
echo '{"jsonrpc": "2.0", "id": 1, "method": "ping"}' | POSTRIDER_API_KEY=$(cat agent.key) postrider mcp`,
  async run({ flags }, context) {
    const api = apiOf(context, flags.sender);
    const { key } = (await callApi(context.clock, api, "GET", "/v1/me")) as { key: { scopes: string[] } };
    await serveOnStdio(callerOf(context, api), key.scopes);
    return EX_OK;
  },
});

function apiOf({ config }: Context, sender: string | undefined): Api {
  if (config.postriderApiKey === null)
    throw usage("POSTRIDER_API_KEY is not set: it is the key with which the agent acts");
  return apiWithKey(config.postriderApiKey, { sender }, config);
}

function callerOf({ clock }: Context, api: Api): CallApi {
  return async ({ body, ...request }) => {
    const { idempotencyKey, ...fields } = body ?? {};
    const { status, text } = await requestApi(clock, api, {
      ...request,
      ...(body === undefined ? {} : { body: fields }),
      ...(typeof idempotencyKey === "string" ? { idempotencyKey } : {}),
      timeoutMs: TOOL_TIMEOUT_MS,
    });
    return { status, body: JSON.parse(text) };
  };
}
