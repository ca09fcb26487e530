import { apiKeyRoutes } from "../../http/routes/projects/api-keys.ts";
import { ACCOUNT_FLAG, accountOf } from "../support/account.ts";
import { defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK } from "../support/exit.ts";
import { askRoute } from "../support/local-request.ts";

/** Revokes an API key. */
export const keysRevoke = defineCommand({
  name: "keys revoke",
  args: ["ID"],
  flags: { account: ACCOUNT_FLAG },
  about: `Revokes the API key with that id for good. A running service refuses it from the next request on. If the key
is already revoked, nothing changes.`,
  example:
    "postrider keys create --name spare --json | grep -o 'key_[0-9a-z]*' | xargs postrider keys revoke",
  async run({ flags, args: [id = ""] }, context) {
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const request = { operationId: "revokeApiKey", accountId, params: { id } };
      await askRoute(apiKeyRoutes({ db, config: context.config }), context.clock, request);
    });
    context.out.record({ id, revoked: true }, `revoked ${id}`);
    return EX_OK;
  },
});
