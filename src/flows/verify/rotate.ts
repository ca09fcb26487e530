import { AppError, notFound } from "../../core/errors.ts";
import { ConstraintError, type Db, type Statement } from "../../store/engine/client.ts";
import { listDkimKeys, type PublicDkimKey, putPendingKey } from "../../store/dkim-keys.ts";
import { checkAt, type Domain, getDomain } from "../../store/domains.ts";
import { isBroken } from "../../store/guards.ts";
import { type KeyDeps, makeDkimKey, SELECTORS } from "./keys.ts";
import { nextCheckAt } from "./schedule.ts";

export interface RotateDeps extends KeyDeps {
  db: Db;
  /** Delays between background checks; null for the default schedule. */
  recheckSeconds: readonly number[] | null;
}

export interface Rotation {
  senderId: string;
  id: string;
  now: number;
  /** Statements for the same write. */
  also: (domain: Domain, keys: PublicDkimKey[]) => Statement[];
}

/**
 * Makes a new DKIM key for a domain under the other selector. It signs once its record is published. A selector keeps its
 * token, so an owner who published both CNAMEs need not change the DNS again.
 * @throws AppError 404; 409 `invalid_state` if another key is not active yet or still retiring
 */
export async function rotateDkim(deps: RotateDeps, rotation: Rotation): Promise<void> {
  const { senderId, id, now } = rotation;
  const domain = await getDomain(deps.db, senderId, id);
  if (domain === null) throw notFound("domain");
  const keys = await listDkimKeys(deps.db, senderId, id);
  if (keys.some(({ status, retireAt }) => status === "pending" || (retireAt !== null && retireAt > now)))
    throw rotationUnderWay();
  const active = keys.filter(({ status }) => status === "active");
  const selector = SELECTORS.find((name) => name !== active[0]?.selector) ?? SELECTORS[0];
  const token = keys.find((key) => key.selector === selector)?.token;
  const key = await makeDkimKey(deps, { domainId: id, selector, status: "pending", token }, now);
  // Not at once, because resolvers may have cached that the record does not exist (RFC 2308 §5).
  const check = checkAt(senderId, id, nextCheckAt(domain, deps.recheckSeconds, now, now));
  try {
    await deps.db.write([...putPendingKey(key, id), check, ...rotation.also(domain, [...active, key])]);
  } catch (error) {
    if (!(error instanceof ConstraintError)) throw error;
    // Another rotation made a pending key in the meantime, or the domain was deleted.
    if (!isBroken(error, "dkim_key_pending") && !error.foreignKey) throw error;
    throw (await getDomain(deps.db, senderId, id)) === null ? notFound("domain") : rotationUnderWay();
  }
}

function rotationUnderWay(): AppError {
  return new AppError("conflict", "The last rotation of this domain's DKIM key is not over yet.", {
    code: "invalid_state",
  });
}
