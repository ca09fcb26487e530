import type { Key } from "../../core/crypto/key-ring.ts";
import { unsealOrNull } from "../../core/crypto/secretbox.ts";
import type { Db, Store, Value } from "../../store/engine/client.ts";
import type { Sealed } from "../../store/installation/secrets.ts";
import type { KeyDeps } from "../records/keys.ts";
import { sealedSteps } from "./reseal.ts";

/** `boxKey` seals new secrets, and opens what is not lost. */
export interface ResetDeps extends Store, Pick<KeyDeps, "generateDkimKey" | "boxKey"> {
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
  for await (const rows of sealedSteps(db, sealed)) {
    const found = rows.map(({ key, values }) => ({
      key,
      lost: new Set(sealed.columns.filter((_, at) => isLost(boxKey, values[at] ?? null))),
    }));
    yield found.filter(({ lost }) => lost.size > 0);
  }
}

/** Returns whether no key opens a sealed secret. */
export function isLost(boxKey: Key, sealed: string | null): boolean {
  return sealed !== null && unsealOrNull(boxKey, sealed) === null;
}
