import type { Db } from "../store/engine/client.ts";
import { listAccounts } from "../store/accounts.ts";
import type { Flag } from "./command.ts";
import { refused, usage } from "./exit.ts";

/** Accounts looked at to find the one meant. */
const MAX_ACCOUNTS = 100;

/** The flag that names the account, where there is more than one. */
export const ACCOUNT_FLAG = {
  type: "string",
  value: "ID",
  help: "account, where there is more than one",
} as const satisfies Flag;

/** The id of the account asked for, or of the only one. Throws where there is none, or more than one to choose from. */
export async function accountOf(db: Db, wanted: string | undefined): Promise<string> {
  const ids = (await listAccounts(db, MAX_ACCOUNTS)).map(({ id }) => id);
  const [only] = ids;
  if (only === undefined) throw refused("there is no account yet: the first start of the service makes one");
  if (wanted !== undefined) {
    if (ids.includes(wanted)) return wanted;
    throw refused(`no such account: ${wanted}`);
  }
  if (ids.length > 1) throw usage(`which account? --account, one of ${ids.join(", ")}`);
  return only;
}
