import { type Static, Type } from "@sinclair/typebox";
import { requiredAddress } from "../../../core/messages/address-input.ts";
import { existing } from "../../../core/errors.ts";
import { NOTICE_KINDS } from "../../../core/notices/kinds.ts";
import { changeNotices } from "../../../flows/notices/settings.ts";
import { noticeSettings } from "../../../store/notices/notice-settings.ts";
import { getAccount, updateOwnerEmail } from "../../../store/projects/accounts.ts";
import { ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { Nullable, OneOf } from "../../routing/schemas.ts";

/** Maximum number of addresses that get notices. */
export const MAX_TO = 10;

const Addresses = Type.Array(Type.String({ examples: ["ops@example.com"] }), { maxItems: MAX_TO });
const Off = Type.Array(OneOf(NOTICE_KINDS), {
  maxItems: NOTICE_KINDS.length,
  description: "Kinds that are not sent. They are still in the list of notices.",
  examples: [["quota_near"]],
});

const AccountSettings = Type.Object(
  {
    id: Type.String(),
    ownerEmail: Type.String({ description: "The only address that test mode delivers to." }),
    notices: Type.Object({
      to: Type.Array(Type.String(), { description: "Addresses that get notices by mail." }),
      webhook: Nullable(Type.String({ description: "URL that gets notices by POST." })),
      off: Off,
      webhookSecret: Type.Optional(
        Type.String({ description: "Signs the requests to the webhook. Only after its URL was changed." }),
      ),
    }),
  },
  { title: "AccountSettings" },
);

const UpdateAccount = Type.Object(
  {
    ownerEmail: Type.Optional(Type.String({ expected: "an email address", examples: ["owner@example.com"] })),
    notices: Type.Optional(
      Type.Object({
        to: Type.Optional(
          Nullable({
            ...Addresses,
            description:
              "Addresses that get notices by mail. Who gets them can approve messages that wait for it. Null: the owner's address. Empty: none.",
          }),
        ),
        webhook: Type.Optional(
          Nullable(
            Type.String({
              description:
                "URL that gets notices by POST, signed like other webhooks. Given again, a disabled one is enabled. Null: none.",
              examples: ["https://example.com/notices"],
            }),
          ),
        ),
        off: Type.Optional(Off),
      }),
    ),
  },
  { title: "AccountChanges" },
);

/** The services of these routes. */
export type SettingsDeps = Pick<Parts, "db" | "clock" | "boxKey" | "urlRules">;

/** Returns the route that shows the account's settings. */
export function accountGetRoute({ db }: SettingsDeps): Route {
  return accountRoute({
    method: "GET",
    path: "/v1/account",
    operationId: "getAccount",
    summary: "Get the account's owner address, and who gets its notices",
    description: "Requires an account-wide key.",
    scope: "senders:read",
    accountWide: true,
    answers: { 200: AccountSettings },
    async handle({ principal: { accountId } }) {
      return ok(await shown(db, accountId));
    },
  });
}

/** Returns the route that changes the account's settings. */
export function accountUpdateRoute(deps: SettingsDeps): Route {
  const { db } = deps;
  return accountRoute({
    method: "PATCH",
    path: "/v1/account",
    operationId: "updateAccount",
    summary: "Update the account's owner address, and who gets its notices",
    description:
      "Test mode delivers to the new address, beginning with the next send. Fields that are absent stay as they are.",
    scope: "senders:write",
    accountWide: true,
    body: UpdateAccount,
    rules: (body: Static<typeof UpdateAccount>) => [ownerEmailOf(body), toOf(body)],
    secretAnswer: true,
    answers: { 200: AccountSettings },
    async handle({ principal: { accountId }, body }) {
      const ownerEmail = ownerEmailOf(body);
      const to = toOf(body);
      // The notices come first, because some URLs are refused. A request that is refused changes nothing.
      const secret =
        body.notices === undefined ? null : await changeNotices(deps, accountId, { ...body.notices, to });
      if (ownerEmail !== undefined) await db.write([updateOwnerEmail(accountId, ownerEmail)]);
      return ok(await shown(db, accountId, secret));
    },
  });
}

async function shown(
  db: SettingsDeps["db"],
  accountId: string,
  secret: string | null = null,
): Promise<Static<typeof AccountSettings>> {
  const { to, off, webhook } = await noticeSettings(db, accountId);
  const { id, ownerEmail } = existing("account", await getAccount(db, accountId));
  const notices = { to: [...to], webhook: webhook?.url ?? null, off: [...off] };
  return {
    id,
    ownerEmail,
    notices: { ...notices, ...(secret === null ? {} : { webhookSecret: secret }) },
  };
}

function ownerEmailOf({ ownerEmail }: Static<typeof UpdateAccount>): string | undefined {
  return ownerEmail === undefined ? undefined : requiredAddress(ownerEmail, "ownerEmail");
}

function toOf({ notices }: Static<typeof UpdateAccount>): string[] | null | undefined {
  const to = notices?.to;
  if (to == null) return to;
  return to.map((given, at) => requiredAddress(given, `notices.to[${at}]`));
}
