import { apiKeyRoutes } from "../http/routes/api-keys.ts";
import { SCOPES } from "../http/scopes.ts";
import type { Db } from "../store/engine/client.ts";
import { findSender } from "../store/senders.ts";
import { ACCOUNT_FLAG, accountOf } from "./account.ts";
import { defineCommand } from "./command.ts";
import { withDatabase } from "./database.ts";
import { EX_OK, refused, usage } from "./exit.ts";
import { askRoute } from "./local-request.ts";
import { claimFile } from "./new-file.ts";

/** Makes an API key and tells its secret once. */
export const keysCreate = defineCommand({
  name: "keys create",
  flags: {
    name: { type: "string", value: "NAME", required: true, help: "what the key is called in lists" },
    sender: {
      type: "string",
      value: "ID",
      help: "project it is for, by id or external id; else account-wide",
    },
    scopes: {
      type: "string",
      value: "A,B",
      help: "what it may do, as emails:send,emails:read; else everything",
    },
    out: {
      type: "string",
      value: "FILE",
      help: "write the secret into a new file, mode 600, and do not print it",
    },
    account: ACCOUNT_FLAG,
  },
  about: `Makes an API key beside a running service, which knows it from the next request on. Only a hash of the secret is
stored: it is shown this once, or written to the file that --out names.`,
  example: "postrider keys create --name shell --sender default --out postrider.key",
  async run({ flags }, context) {
    const { clock, out } = context;
    const scopes = flags.scopes === undefined ? [] : scopesOf(flags.scopes);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const senderId = flags.sender === undefined ? null : await senderOf(db, accountId, flags.sender);
      // The file goes first: a secret that cannot be kept must not be made.
      const file = flags.out === undefined ? null : claimFile(flags.out);
      try {
        const body = { name: flags.name, senderId, scopes };
        const request = { operationId: "createApiKey", accountId, body };
        const { secret, ...key } = (await askRoute(apiKeyRoutes({ db }), clock, request)) as NewKey;
        file?.finish(`${secret}\n`);
        if (flags.out === undefined)
          out.record({ ...key, secret }, madeText(key.id, `  ${secret}`, "shown this once"));
        else
          out.record(
            { ...key, secretFile: flags.out },
            madeText(key.id, `  in ${flags.out}`, "kept there alone"),
          );
      } catch (error) {
        file?.giveUp();
        throw error;
      }
    });
    return EX_OK;
  },
});

function scopesOf(list: string): string[] {
  const scopes = list.split(",").flatMap((scope) => scope.trim() || []);
  // No scopes are all of them: an empty variable in a script is not to make such a key.
  if (scopes.length === 0) throw usage("--scopes names none; left out, the key may do everything");
  const known: readonly string[] = SCOPES;
  const none = scopes.filter((scope) => !known.includes(scope));
  if (none.length > 0)
    throw refused(`--scopes: no such scope: ${none.join(", ")}; there are ${SCOPES.join(", ")}`);
  return scopes;
}

interface NewKey extends Record<string, unknown> {
  id: string;
  secret: string;
}

function madeText(id: string, secret: string, remark: string): string {
  return `made ${id}; its secret, ${remark}:\n${secret}`;
}

async function senderOf(db: Db, accountId: string, name: string): Promise<string> {
  const sender = await findSender(db, accountId, name);
  if (sender === null) throw refused(`no such project: ${name}`);
  return sender.id;
}
