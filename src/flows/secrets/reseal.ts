import type { Key } from "../../core/crypto/key-ring.ts";
import { reseal } from "../../core/crypto/secretbox.ts";
import type { Db, Guard, Value } from "../../store/engine/client.ts";
import { replaceSealed, type SealedRow, sealedRows } from "../../store/installation/sealed-rows.ts";
import { SEALED, type Sealed } from "../../store/installation/secrets.ts";

/** Rows of one step, which is one read and one short write. */
export const ROWS_PER_STEP = 100;
/** Maximum number of walks through all tables. Only what is written during the first one is left to the next. */
export const MAX_WALKS = 5;

/** How many secrets of a table were sealed again, and how many no key opens. */
export interface Resealed {
  table: string;
  resealed: number;
  lost: number;
}

/**
 * Seals every secret under the key that makes, in steps. Walks until a walk finds nothing more.
 * @param guard must hold in each write
 * @throws Error if other processes still seal with an earlier key in the last walk
 */
export async function resealAll(db: Db, boxKey: Key, guard: Guard): Promise<Resealed[]> {
  const totals = SEALED.map(({ table }) => ({ table, resealed: 0, lost: 0 }));
  for (let walk = 0; walk < MAX_WALKS; walk++) {
    let changed = 0;
    for (const [at, sealed] of SEALED.entries()) {
      const total = totals[at];
      const found = await walkTable(db, sealed, boxKey, guard);
      if (total !== undefined)
        Object.assign(total, { resealed: total.resealed + found.resealed, lost: found.lost });
      changed += found.resealed;
    }
    if (changed === 0) return totals;
  }
  throw new Error("secrets are still being sealed with the earlier key");
}

/** Reads all rows of a table with sealed values, in steps. */
export async function* sealedSteps(db: Db, sealed: Sealed): AsyncGenerator<SealedRow[]> {
  let after: readonly Value[] | null = null;
  for (;;) {
    const rows: SealedRow[] = await sealedRows(db, sealed, after, ROWS_PER_STEP);
    yield rows;
    after = rows.at(-1)?.key ?? null;
    if (rows.length < ROWS_PER_STEP) return;
  }
}

async function walkTable(
  db: Db,
  sealed: Sealed,
  boxKey: Key,
  guard: Guard,
): Promise<Omit<Resealed, "table">> {
  const total = { resealed: 0, lost: 0 };
  for await (const rows of sealedSteps(db, sealed)) {
    const found = rows.map((row) => resealRow(row, boxKey));
    for (const { changed, lost } of found) {
      total.resealed += changed;
      total.lost += lost;
    }
    const statements = found
      .filter(({ changed }) => changed > 0)
      .map(({ row, values }) => replaceSealed(sealed, row, values, guard));
    if (statements.length > 0) await db.write(statements);
  }
  return total;
}

/** Seals the values of a row again. Equal ones stay equal, because a certificate's next key may be its present one. */
function resealRow(row: SealedRow, boxKey: Key) {
  const again = new Map<string, string | null>();
  for (const value of row.values)
    if (value !== null && !again.has(value)) again.set(value, resealedOrNull(boxKey, value));
  const values = row.values.map((value) => (value === null ? null : (again.get(value) ?? value)));
  const isLost = (value: string | null) => value !== null && again.get(value) === null;
  return {
    row,
    values,
    changed: values.filter((value, at) => value !== row.values[at]).length,
    lost: row.values.filter(isLost).length,
  };
}

function resealedOrNull(boxKey: Key, value: string): string | null {
  try {
    return reseal(boxKey, value);
  } catch {
    return null;
  }
}
