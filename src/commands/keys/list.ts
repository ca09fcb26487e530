import { apiKeyRoutes } from "../../http/routes/projects/api-keys.ts";
import { ACCOUNT_FLAG, accountOf } from "../support/account.ts";
import { defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK } from "../support/exit.ts";
import { LIMIT_FLAG, limitOf, showPage } from "../support/listing.ts";
import { askRoute } from "../support/local-request.ts";
import { type Column, field } from "../support/output.ts";

const PROJECT: Column = {
  heading: "project",
  text: ({ senderExternalId }) => (typeof senderExternalId === "string" ? senderExternalId : "(all)"),
};
const COLUMNS = [
  field("id"),
  field("name"),
  field("keyPrefix", "prefix"),
  field("last4"),
  PROJECT,
  field("scopes"),
  field("lastUsedAt", "last used"),
  field("revokedAt", "revoked"),
  field("createdAt", "created"),
];

/** Lists API keys. */
export const keysList = defineCommand({
  name: "keys list",
  flags: { account: ACCOUNT_FLAG, limit: LIMIT_FLAG },
  about:
    "Lists API keys, newest first, including revoked ones. Secrets are not stored, so they cannot be shown.",
  example: "postrider keys list",
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const request = { operationId: "listApiKeys", accountId, limit };
      showPage(
        context.out,
        await askRoute(apiKeyRoutes({ db, config: context.config }), context.clock, request),
        COLUMNS,
      );
    });
    return EX_OK;
  },
});
