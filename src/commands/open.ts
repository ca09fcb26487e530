import { makeStartLink, startUrl } from "../flows/account/start-link.ts";
import { serviceUrl } from "../wiring/process/banner.ts";
import { ACCOUNT_FLAG, accountOf } from "./support/account.ts";
import { defineCommand } from "./support/command.ts";
import { withDatabase } from "./support/database.ts";
import { EX_OK, refused } from "./support/exit.ts";

/** Prints a link that signs a browser in once. A user who can read the database could also make a key. */
export const open = defineCommand({
  name: "open",
  flags: { account: ACCOUNT_FLAG },
  about: `Prints a link to the dashboard that signs a browser in with the account-wide key. The link works once, within 15
minutes, also while the service runs.`,
  example: "postrider open",
  async run({ flags }, context) {
    const { config, clock, out } = context;
    if (config.port === 0 && !config.sources.has("PUBLIC_URL"))
      throw refused("PORT is 0, so the port of the service is not known: set PORT or PUBLIC_URL");
    await withDatabase(context, async (db) => {
      const { token, expiresAt } = await makeStartLink({ db, clock }, await accountOf(db, flags.account));
      const url = startUrl(serviceUrl(config, config.port), token);
      out.record({ url, expiresAt: new Date(expiresAt).toISOString() }, `Open ${url}`);
    });
    return EX_OK;
  },
});
