import { addressKey } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import type { DoneRow, WaitingRow } from "../../store/imports/parts.ts";
import { type Suppression, suppress } from "../../store/projects/suppressions.ts";
import { addSuppressions, type Listed } from "../projects/suppressions.ts";
import type { Part, PartDeps } from "./part.ts";
import type { SuppressionValues } from "./row-values.ts";

/** Adds the suppressions of a part with its results in one write, or says what would become of them. */
export async function saveSuppressionPart(deps: PartDeps, part: Part): Promise<DoneRow[]> {
  const { senderId, rows, settle, preview } = part;
  const wanted = wantedOf(senderId, rows);
  const adding = {
    senderId,
    project: part.project,
    now: part.now,
    ...(preview === undefined ? {} : { preview }),
  };
  const listed = await addSuppressions(deps, adding, wanted, (found) => [
    ...[...wanted].flatMap(([key, entry]) => {
      const stood = found.stood.get(key);
      return stood !== undefined && outlasts(entry, stood)
        ? [suppress({ ...entry, email: stood.email })]
        : [];
    }),
    ...settle(doneRows(rows, wanted, found)),
  ]);
  return doneRows(rows, wanted, listed);
}

/** Returns the entry of each address. Of several, the one that lasts longest counts. */
function wantedOf(senderId: string, rows: readonly WaitingRow[]): Map<string, Suppression> {
  const wanted = new Map<string, Suppression>();
  for (const [, email, values] of rows) {
    if (values === null) continue;
    const entry = entryOf(senderId, email, values as SuppressionValues);
    const other = wanted.get(entry.email);
    if (other === undefined || outlasts(entry, other)) wanted.set(entry.email, entry);
  }
  return wanted;
}

/** Returns an entry. Its id has the time of the file, so a list keeps its order. */
function entryOf(senderId: string, email: string, values: SuppressionValues): Suppression {
  return {
    ...values,
    id: newId("sup", values.createdAt),
    senderId,
    email: addressKey(email),
    messageId: null,
  };
}

function outlasts(entry: Suppression, other: Suppression): boolean {
  return other.expiresAt !== null && (entry.expiresAt === null || entry.expiresAt > other.expiresAt);
}

function doneRows(
  rows: readonly WaitingRow[],
  wanted: ReadonlyMap<string, Suppression>,
  { stood, added, refusal }: Listed,
): DoneRow[] {
  const seen = new Set<string>();
  return rows.map(([row, email, values, error]) => {
    if (values === null) return [row, email, "failed", error];
    const key = addressKey(email);
    const again = seen.has(key);
    seen.add(key);
    const entry = wanted.get(key);
    const before = stood.get(key);
    if (before !== undefined) {
      const longer = !again && entry !== undefined && outlasts(entry, before);
      return [row, email, longer ? "updated" : "unchanged", null];
    }
    if (added.has(key)) return [row, email, again ? "unchanged" : "created", null];
    return [row, email, "failed", refusal?.message ?? null];
  });
}
