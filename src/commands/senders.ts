import { senderRoutes } from "../http/routes/projects/senders.ts";
import { ACCOUNT_FLAG, accountOf } from "./support/account.ts";
import { defineCommand } from "./support/command.ts";
import { withDatabase } from "./support/database.ts";
import { EX_OK, refused } from "./support/exit.ts";
import { LIMIT_FLAG, limitOf, showPage } from "./support/listing.ts";
import { askRoute } from "./support/local-request.ts";
import { field } from "./support/output.ts";

const COLUMNS = [
  field("id"),
  field("externalId", "external id"),
  field("name"),
  field("plan"),
  field("trustTier", "trust tier"),
  field("dailyQuota", "quota"),
  field("suspendedAt", "suspended"),
  field("createdAt", "created"),
];

/** Creates a project. */
export const sendersCreate = defineCommand({
  name: "senders create",
  flags: {
    name: { type: "string", value: "NAME", required: true, help: "name of the project" },
    "external-id": { type: "string", value: "ID", help: "your own id for it (default: derived from NAME)" },
    plan: {
      type: "string",
      value: "PLAN",
      help: "request rate: free, pro, unlimited or your own (default: DEFAULT_PLAN)",
    },
    "trust-tier": {
      type: "string",
      value: "TIER",
      help: "recipients per day: new, basic, trusted, high, unlimited or your own (default: DEFAULT_TRUST_TIER)",
    },
    account: ACCOUNT_FLAG,
  },
  about: "Creates a project. Its messages, domains and keys are separate from those of other projects.",
  example: "postrider senders create --name 'Newsletter' --plan pro --trust-tier trusted",
  async run({ flags }, context) {
    const { config, clock, out } = context;
    const { plan = config.defaultPlan, "trust-tier": trustTier = config.defaultTrustTier } = flags;
    requireOneOf("--plan", plan, config.plans);
    requireOneOf("--trust-tier", trustTier, config.tiers);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const routes = senderRoutes({ db, config });
      const externalId = flags["external-id"];
      const named = { name: flags.name, ...(externalId === undefined ? {} : { externalId }) };
      const body = { ...named, plan, trustTier };
      const made = await askRoute(routes, clock, { operationId: "createSender", accountId, body });
      const sender = made as { id: string; externalId: string };
      out.record({ ...sender }, `made ${sender.id}, external id ${sender.externalId}`);
    });
    return EX_OK;
  },
});

/** Lists projects. */
export const sendersList = defineCommand({
  name: "senders list",
  flags: { account: ACCOUNT_FLAG, limit: LIMIT_FLAG },
  about: "Lists projects, newest first.",
  example: "postrider senders list",
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const routes = senderRoutes({ db, config: context.config });
      showPage(
        context.out,
        await askRoute(routes, context.clock, { operationId: "listSenders", accountId, limit }),
        COLUMNS,
      );
    });
    return EX_OK;
  },
});

function requireOneOf(flag: string, name: string, known: Readonly<Record<string, unknown>>): void {
  if (!Object.hasOwn(known, name)) throw refused(`${flag}: one of ${Object.keys(known).join(", ")}`);
}
