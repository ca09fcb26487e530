import { seal } from "../../core/crypto/secretbox.ts";
import { dkimTarget } from "../../core/own-names.ts";
import type { DkimKeyRecord } from "../../store/domains/dkim-keys.ts";
import type { Statement } from "../../store/engine/client.ts";
import {
  deleteRow,
  domainsWith,
  failDkim,
  type KeyedDomain,
  keysWith,
  LOST,
  putKey,
} from "../../store/installation/lost-secrets.ts";
import { RETIRED_KEY_MS } from "../domains/verify.ts";
import { makeDkimKey, SELECTORS } from "../records/keys.ts";
import { dkimName } from "../records/records.ts";
import { isLost, type Lost, type LostRow, type ResetDeps } from "./lost-rows.ts";

const TABLE = { table: "dkim_keys", key: ["token"] } as const;

/**
 * Replaces lost DKIM keys. A domain's new ones sign at once, under its other selectors; the old ones stay published for mail in
 * transit. A selector keeps its token, so an owner who has published all CNAMEs changes nothing. The installation's own key keeps its place.
 */
export async function replaceDkim(deps: ResetDeps, rows: readonly LostRow[]): Promise<Lost[]> {
  const tokens = rows.map(({ key: [token] }) => String(token));
  const keys = await keysWith(deps.db, tokens);
  const byDomain = Map.groupBy(keys, ({ domainId }) => domainId);
  const domains = await domainsWith(
    deps.db,
    [...byDomain.keys()].filter((id) => id !== null),
  );
  const found: Lost[] = [];
  for (const [id, all] of byDomain) {
    const lost = all.filter((key) => isLost(deps.boxKey, key.sealedPrivateKey));
    // A domain is handled with the first of its lost keys, whatever step the others are in.
    if (!tokens.includes(lost.map(({ token }) => token).sort()[0] ?? "")) continue;
    const domain = domains.find((one) => one.id === id) ?? null;
    found.push(
      ...(domain === null ? await replaceOwn(deps, lost) : await replaceOf(deps, domain, all, lost)),
    );
  }
  return found;
}

async function replaceOwn(deps: ResetDeps, lost: readonly DkimKeyRecord[]): Promise<Lost[]> {
  const now = deps.clock.now();
  for (const key of deps.act ? lost : [])
    await deps.db.write([putKey({ ...(await makeDkimKey(deps, key, now)), domainId: null })]);
  const todo = `If another name server has the zone of ${deps.serviceDomain}, put the zone there again (postrider dns zone)`;
  return [{ kind: "DKIM key of the service", id: "", name: deps.serviceDomain, project: null, todo }];
}

async function replaceOf(
  deps: ResetDeps,
  domain: KeyedDomain,
  all: readonly DkimKeyRecord[],
  lost: readonly DkimKeyRecord[],
): Promise<Lost[]> {
  const { db, clock, serviceDomain, act } = deps;
  const now = clock.now();
  const signing = lost.filter(({ status }) => status === "active");
  const places = signing.map(({ algorithm, selector: used }) => {
    const selector = SELECTORS[algorithm].find((name) => name !== used) ?? used;
    return { algorithm, selector, token: all.find((key) => key.selector === selector)?.token };
  });
  const made = act
    ? await Promise.all(
        places.map((place) => makeDkimKey(deps, { ...place, domainId: domain.id, status: "active" }, now)),
      )
    : [];
  const reused = new Set(made.map(({ token }) => token));
  const statements: Statement[] = lost
    .filter(({ token }) => !reused.has(token))
    .map((key) => (key.status === "pending" ? deleteRow(TABLE, [key.token]) : retired(deps, key, now)));
  const failing = signing.length === 0 ? [] : [failDkim(domain.id, now)];
  if (act) await db.write([...statements, ...made.map(putKey), ...failing]);
  if (signing.length === 0) return [];
  const records = places.map(({ selector, token: known }) => {
    const token = made.find((key) => key.selector === selector)?.token ?? known;
    return {
      name: dkimName(selector, domain.name),
      type: "CNAME",
      value: token === undefined ? null : dkimTarget(token, serviceDomain),
    };
  });
  const publish = records.map(({ name, value }) => `${name} CNAME ${value ?? "(of the new key)"}`).join(", ");
  const todo = domain.served === 1 ? "Nothing: the domain is delegated" : `Publish ${publish}`;
  const { id, name, senderId: project } = domain;
  return [{ kind: "DKIM key", id, name, project, todo, ...(domain.served === 1 ? {} : { records }) }];
}

/** Keeps a key published for mail in transit. It never signs again. */
function retired({ boxKey }: ResetDeps, key: DkimKeyRecord, now: number): Statement {
  const retireAt = key.retireAt ?? now + RETIRED_KEY_MS;
  return putKey({ ...key, status: "retired", retireAt, sealedPrivateKey: seal(boxKey, LOST) });
}
