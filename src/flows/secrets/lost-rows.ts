import type { Key } from "../../core/crypto/key-ring.ts";
import { unsealOrNull } from "../../core/crypto/secretbox.ts";
import type { Db, Store, Value } from "../../store/engine/client.ts";
import { type SealedRow, sealedRows } from "../../store/installation/sealed-rows.ts";
import type { Sealed } from "../../store/installation/secrets.ts";
import type { KeyDeps } from "../records/keys.ts";
import { ROWS_PER_STEP } from "./reseal.ts";

export interface ResetDeps extends Store, Pick<KeyDeps, "generateDkimKey" | "boxKey"> {
  /** Seals new secrets, and opens what is not lost. The same as `boxKey`. */
  box: Key;
  serviceDomain: string;
  /** False: only show what is lost. */
  act: boolean;
}

/** A lost secret, and what its owner must do. */
export interface Lost {
  kind: string;
  id: string;
  name: string;
  project: string | null;
  todo: string;
  /** DNS records to publish. The value is null until the key is made. */
  records?: readonly { name: string; type: string; value: string | null }[];
  /** The new signing secret of a webhook, which is shown once. */
  secret?: string;
}

/** A row with the columns that no key opens. */
export interface LostRow {
  key: readonly Value[];
  lost: ReadonlySet<string>;
}

/** Walks a table, and returns the rows with lost secrets in steps. */
export async function* lostRows(db: Db, sealed: Sealed, boxKey: Key): AsyncGenerator<LostRow[]> {
  let after: readonly Value[] | null = null;
  for (;;) {
    const rows: SealedRow[] = await sealedRows(db, sealed, after, ROWS_PER_STEP);
    const found = rows.map(({ key, values }) => ({
      key,
      lost: new Set(sealed.columns.filter((_, at) => isLost(boxKey, values[at] ?? null))),
    }));
    yield found.filter(({ lost }) => lost.size > 0);
    after = rows.at(-1)?.key ?? null;
    if (rows.length < ROWS_PER_STEP) return;
  }
}

/** Returns whether no key opens a sealed secret. */
export function isLost(boxKey: Key, sealed: string | null): boolean {
  return sealed !== null && unsealOrNull(boxKey, sealed) === null;
}
