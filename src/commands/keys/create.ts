import { apiKeyRoutes } from "../../http/routes/projects/api-keys.ts";
import { SCOPES } from "../../http/routing/scopes.ts";
import type { Db } from "../../store/engine/client.ts";
import { findProject } from "../../store/projects/projects.ts";
import { ACCOUNT_FLAG, accountOf } from "../support/account.ts";
import { defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK, refused, usage } from "../support/exit.ts";
import { askRoute } from "../support/local-request.ts";
import { claimFile } from "../support/new-file.ts";

/** Creates an API key and prints its secret once. */
export const keysCreate = defineCommand({
  name: "keys create",
  flags: {
    name: { type: "string", value: "NAME", required: true, help: "name of the key in lists" },
    sender: {
      type: "string",
      value: "ID",
      help: "project of the key, by id or external id (default: account-wide)",
    },
    scopes: {
      type: "string",
      value: "A,B",
      help: "scopes, such as emails:send,emails:read (default: all)",
    },
    out: {
      type: "string",
      value: "FILE",
      help: "write the secret to a new file with mode 600 instead of printing it",
    },
    account: ACCOUNT_FLAG,
  },
  about: `Creates an API key, also while the service runs. The key works at once. Only a hash of the secret is stored,
so the secret is shown only now, or written to the file that --out names.`,
  example: "postrider keys create --name shell --sender default --out postrider.key",
  async run({ flags }, context) {
    const { clock, out } = context;
    const scopes = flags.scopes === undefined ? [] : scopesOf(flags.scopes);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const senderId = flags.sender === undefined ? null : await senderOf(db, accountId, flags.sender);
      // The file comes first, because a secret that cannot be stored must not be created.
      const file = flags.out === undefined ? null : claimFile(flags.out);
      try {
        const body = { name: flags.name, senderId, scopes };
        const request = { operationId: "createApiKey", accountId, body };
        const { secret, ...key } = (await askRoute(
          apiKeyRoutes({ db, config: context.config }),
          clock,
          request,
        )) as NewKey;
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
  // An empty list means all scopes, so an empty variable in a script must not make such a key.
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
  const sender = await findProject(db, accountId, name);
  if (sender === null) throw refused(`no such project: ${name}`);
  return sender.id;
}
