// Replaces what a lost master key sealed. An operator who has lost it would miss it: without it the way back is an empty database,
// and with it every domain, message, suppression and API key stays. One rule for all tables was tried first, but only people have a
// relay's login, a CA gives certificates again, and a DKIM key must stay published.
import { seal } from "../../core/crypto/secretbox.ts";
import { ALWAYS } from "../../store/engine/client.ts";
import { recordFact } from "../../store/installation/facts.ts";
import {
  deleteRow,
  endPreviousSecret,
  endRelayEvents,
  LOST,
  loseRelay,
  orderAgain,
  replaceSecret,
  rowsNamed,
} from "../../store/installation/lost-secrets.ts";
import { SEALED, type Sealed } from "../../store/installation/secrets.ts";
import { newSigningSecret } from "../webhooks/webhooks.ts";
import { replaceDkim } from "./lost-dkim.ts";
import { type Lost, type LostRow, lostRows, type ResetDeps } from "./lost-rows.ts";
import { resealAll } from "./reseal.ts";

type Replace = (deps: ResetDeps, rows: readonly LostRow[], sealed: Sealed) => Promise<Lost[]>;

/** How the lost secrets of each table are replaced. The test of `SEALED` fails if a table is missing. */
export const REPLACE: Readonly<Record<string, Replace>> = {
  dkim_keys: replaceDkim,
  webhooks: replaceWebhooks,
  routes: replaceRoutes,
  certificates: (deps, rows) =>
    eachRow(deps, rows, "certificate", "Nothing: it is ordered again", ({ key: [id], lost }) =>
      orderAgain(String(id), lost.has("private_key"), deps.clock.now()),
    ),
  acme_accounts: forget("ACME account", "Nothing: a new account is made"),
  erasures: forget("erasure", "Ask for the erasure of the address again"),
  idempotency: forget("repeated answer", "Nothing: a request that is repeated runs again"),
  installation: forget("earlier link keys", "Nothing: links in mail that was sent lead nowhere"),
};

/** Finds every lost secret, and replaces it if it may. What one step has replaced, a repeated call does not find. */
export async function* replaceLost(deps: ResetDeps): AsyncGenerator<Lost> {
  for (const sealed of SEALED)
    for await (const rows of lostRows(deps.db, sealed, deps.boxKey))
      if (rows.length > 0) yield* (await REPLACE[sealed.table]?.(deps, rows, sealed)) ?? [];
}

/** Ends a reset: what other keys of this process open is sealed with the new one, which is then the installation's. */
export async function endReset({ db, boxKey }: ResetDeps, masterKeyId: string): Promise<void> {
  await resealAll(db, boxKey, ALWAYS);
  await db.write([recordFact("master_key", masterKeyId), recordFact("master_key_rotation", "")]);
}

async function replaceWebhooks({ db, boxKey, act }: ResetDeps, rows: readonly LostRow[]): Promise<Lost[]> {
  const lost = new Map(rows.map((row) => [String(row.key[0]), row.lost]));
  const found: Lost[] = [];
  for (const { id, name, senderId, kind } of await rowsNamed(db, "webhooks", [...lost.keys()])) {
    const secret = newSigningSecret(kind === "resend" ? "resend" : "postrider");
    const current = lost.get(id)?.has("secret") === true;
    if (act) await db.write([current ? replaceSecret(id, seal(boxKey, secret)) : endPreviousSecret(id)]);
    const todo = act ? `Give the receiver the new secret ${secret}` : "Give the receiver the new secret";
    if (current)
      found.push({ kind: "webhook secret", id, name, project: senderId, todo, ...(act ? { secret } : {}) });
  }
  return found;
}

async function replaceRoutes({ db, boxKey, act }: ResetDeps, rows: readonly LostRow[]): Promise<Lost[]> {
  const lost = new Map(rows.map((row) => [String(row.key[0]), row.lost]));
  const found: Lost[] = [];
  for (const { id, name } of await rowsNamed(db, "routes", [...lost.keys()])) {
    const [login, events] = ["sealed_relay_url", "sealed_proof"].map(
      (column) => lost.get(id)?.has(column) === true,
    );
    const statements = [
      ...(login ? [loseRelay(id, seal(boxKey, LOST))] : []),
      ...(events ? [endRelayEvents(id)] : []),
    ];
    if (act) await db.write(statements);
    const set = (what: string) => `Set ${what} again (PATCH /v1/routes/${id})`;
    if (login)
      found.push({
        kind: "relay login",
        id,
        name,
        project: null,
        todo: `${set("relayUrl")}; its mail waits`,
      });
    if (events) found.push({ kind: "relay events", id, name, project: null, todo: set("events") });
  }
  return found;
}

function forget(kind: string, todo: string): Replace {
  return (deps, rows, sealed) => eachRow(deps, rows, kind, todo, ({ key }) => deleteRow(sealed, key));
}

async function eachRow(
  { db, act }: ResetDeps,
  rows: readonly LostRow[],
  kind: string,
  todo: string,
  statement: (row: LostRow) => Parameters<typeof db.write>[0][number],
): Promise<Lost[]> {
  if (act) await db.write(rows.map(statement));
  return rows.map(({ key }) => ({ kind, id: key.map(String).join(" "), name: "", project: null, todo }));
}
