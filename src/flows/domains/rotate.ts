import { algorithmsOf, type DkimAlgorithm, type DkimChoice } from "../../core/domains/dkim-keys.ts";
import { AppError, notFound, existing } from "../../core/errors.ts";
import { ConstraintError, type Statement } from "../../store/engine/client.ts";
import {
  type DkimKeyStatus,
  listDkimKeys,
  type PublicDkimKey,
  putPendingKeys,
} from "../../store/domains/dkim-keys.ts";
import { checkAt, type Domain, getDomain } from "../../store/domains/domains.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { makeDkimKey, SELECTORS } from "../records/keys.ts";
import { nextCheckAt } from "./check-times.ts";
import type { Checking } from "./checking.ts";

export interface Rotation {
  senderId: string;
  id: string;
  now: number;
  /** The keys to change to. If left out, the domain keeps its algorithms. */
  dkimKeys?: DkimChoice | undefined;
  /** Statements for the same write. */
  also: (domain: Domain, keys: PublicDkimKey[]) => Statement[];
}

/**
 * Makes new DKIM keys for a domain under their other selectors. They sign once the records of all of them are published. A
 * selector keeps its token, so an owner who published all CNAMEs need not change the DNS again. Keys that are not published
 * yet give way to a rotation to other algorithms, because they may never be published.
 * @throws AppError 404; 409 `invalid_state` if another key is not active yet or still retiring
 */
export async function rotateDkim(deps: Checking, rotation: Rotation): Promise<void> {
  const { senderId, id, now, dkimKeys } = rotation;
  const domain = existing("domain", await getDomain(deps.db, senderId, id));
  const keys = await listDkimKeys(deps.db, senderId, id);
  const [active, pending] = [keysIn(keys, "active"), keysIn(keys, "pending")];
  const algorithms =
    dkimKeys === undefined ? active.map(({ algorithm }) => algorithm) : algorithmsOf(dkimKeys);
  const givesWay = dkimKeys !== undefined && !isSame(algorithms, pending);
  if ((pending.length > 0 && !givesWay) || keys.some(({ retireAt }) => retireAt !== null && retireAt > now))
    throw rotationUnderWay();
  const made = await Promise.all(
    algorithms.map((algorithm) => {
      const used = active.map(({ selector }) => selector);
      const selector = SELECTORS[algorithm].find((name) => !used.includes(name)) ?? SELECTORS[algorithm][0];
      const token = keys.find((key) => key.selector === selector)?.token;
      return makeDkimKey(deps, { domainId: id, selector, algorithm, status: "pending", token }, now);
    }),
  );
  // Not at once, because resolvers may have cached that the record does not exist (RFC 2308 §5).
  const check = checkAt(senderId, id, nextCheckAt(domain, deps.recheckSeconds, now, now));
  try {
    const stored = putPendingKeys(made, id, pending);
    await deps.db.write([...stored, check, ...rotation.also(domain, [...active, ...made])]);
  } catch (error) {
    if (!(error instanceof ConstraintError)) throw error;
    // Another rotation made a pending key in the meantime, or the domain was deleted.
    if (!isBroken(error, "dkim_key_pending") && !error.foreignKey) throw error;
    throw (await getDomain(deps.db, senderId, id)) === null ? notFound("domain") : rotationUnderWay();
  }
}

function keysIn(keys: readonly PublicDkimKey[], wanted: DkimKeyStatus): PublicDkimKey[] {
  return keys.filter(({ status }) => status === wanted);
}

/** Returns whether keys have exactly these algorithms. */
function isSame(algorithms: readonly DkimAlgorithm[], keys: readonly PublicDkimKey[]): boolean {
  return algorithms.length === keys.length && keys.every(({ algorithm }) => algorithms.includes(algorithm));
}

function rotationUnderWay(): AppError {
  return new AppError("conflict", "The last rotation of this domain's DKIM key is not over yet.", {
    code: "invalid_state",
  });
}
