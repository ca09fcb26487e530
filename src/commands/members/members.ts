import { newSignInLink } from "../../flows/account/sign-in.ts";
import { startUrl } from "../../flows/account/start-link.ts";
import { memberRoutes } from "../../http/routes/projects/members.ts";
import type { Db } from "../../store/engine/client.ts";
import { serviceUrl } from "../../wiring/process/banner.ts";
import { ACCOUNT_FLAG, accountOf } from "../support/account.ts";
import { type Context, defineCommand } from "../support/command.ts";
import { withDatabase } from "../support/database.ts";
import { EX_OK } from "../support/exit.ts";
import { LIMIT_FLAG, limitOf, showPage } from "../support/listing.ts";
import { askRoute, type LocalRequest } from "../support/local-request.ts";
import { field } from "../support/output.ts";

const COLUMNS = [
  field("id"),
  field("email"),
  field("role"),
  field("senderIds", "projects"),
  field("status"),
  field("lastSeenAt", "last seen"),
  field("createdAt", "created"),
];

/** Asks a route of members. The command prints the link, so that none is mailed. */
function ask(db: Db, { clock }: Context, request: LocalRequest): Promise<unknown> {
  return askRoute(memberRoutes({ db, mailLink: async () => undefined }), clock, request);
}

/** Invites a person, and prints the link that signs in. */
export const membersInvite = defineCommand({
  name: "members invite",
  args: ["EMAIL"],
  flags: {
    role: {
      type: "string",
      value: "ROLE",
      required: true,
      help: "owner, developer, support or viewer",
    },
    account: ACCOUNT_FLAG,
  },
  about: `Makes a member, and prints a link that signs in to the dashboard once, within 15 minutes. Give it to that person
only. Nothing is mailed; the sign-in page mails another link to the address.`,
  example: "postrider members invite ana@example.com --role support",
  async run({ flags, args: [email = ""] }, context) {
    const { config, clock, out } = context;
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      const body = { email, role: flags.role };
      const made = await ask(db, context, { operationId: "createMember", accountId, body });
      const { id } = made as { id: string };
      const token = (await newSignInLink({ db, clock }, id)) ?? "";
      const url = startUrl(serviceUrl(config, config.port), token);
      out.record({ id, email, role: flags.role, url }, `invited ${email} as ${id}. Open ${url}`);
    });
    return EX_OK;
  },
});

/** Lists members. */
export const membersList = defineCommand({
  name: "members list",
  flags: { account: ACCOUNT_FLAG, limit: LIMIT_FLAG },
  about: "Lists the people who can sign in to the dashboard, newest first.",
  example: "postrider members list",
  async run({ flags }, context) {
    const limit = limitOf(flags.limit);
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      showPage(
        context.out,
        await ask(db, context, { operationId: "listMembers", accountId, limit }),
        COLUMNS,
      );
    });
    return EX_OK;
  },
});

/** Removes a member. */
export const membersRemove = defineCommand({
  name: "members remove",
  args: ["ID"],
  flags: { account: ACCOUNT_FLAG },
  about: `Removes the member with that id, and ends all sessions of that person. Keys that the member has made stay.`,
  example:
    "postrider members invite eve@example.com --role viewer --json | grep -o 'mem_[0-9a-z]*' | xargs postrider members remove",
  async run({ flags, args: [id = ""] }, context) {
    await withDatabase(context, async (db) => {
      const accountId = await accountOf(db, flags.account);
      await ask(db, context, { operationId: "deleteMember", accountId, params: { id } });
    });
    context.out.record({ id, removed: true }, `removed ${id}`);
    return EX_OK;
  },
});
