import type { Db } from "../../store/engine/client.ts";
import { listAccounts } from "../../store/projects/accounts.ts";
import type { Flag } from "./command.ts";
import { refused, usage } from "./exit.ts";

/** Maximum number of accounts that are read to find the right one. */
const MAX_ACCOUNTS = 100;

/** The flag that names the account. It is needed if there is more than one. */
export const ACCOUNT_FLAG = {
  type: "string",
  value: "ID",
  help: "account id; needed if there is more than one account",
} as const satisfies Flag;

/**
 * Returns the id of the requested account, or of the only one. Throws if there is none, or if there are several and
 * none was named.
 */
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
