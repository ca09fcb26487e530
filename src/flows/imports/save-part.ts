import { limitsOf, overQuota } from "../../core/quotas.ts";
import type { ImportCounts, ImportKind } from "../../store/imports/imports.ts";
import type { DoneRow } from "../../store/imports/parts.ts";
import { overQuotaIn } from "../../store/projects/holdings.ts";
import { saveContactPart } from "./contact-part.ts";
import type { Part, PartDeps } from "./part.ts";
import { saveSuppressionPart } from "./suppression-part.ts";

const SAVE = { contacts: saveContactPart, suppressions: saveSuppressionPart } as const satisfies Record<
  ImportKind,
  unknown
>;

/** Saves a part with its results in one write. If it would exceed the project's stored octets, all its rows fail. */
export async function savePart(deps: PartDeps, kind: ImportKind, part: Part): Promise<DoneRow[]> {
  try {
    return await SAVE[kind](deps, part);
  } catch (error) {
    const resource = overQuotaIn(error);
    if (resource === null) throw error;
    const { message } = overQuota(resource, limitsOf(deps.quotas, part.project.plan)[resource]);
    const failed = part.rows.map(
      ([row, email, , fault]): DoneRow => [row, email, "failed", fault ?? message],
    );
    await deps.db.write(part.settle(failed));
    return failed;
  }
}

/** Returns the numbers of rows by outcome. */
export function countsOf(rows: readonly DoneRow[]): ImportCounts {
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 };
  for (const [, , outcome] of rows) counts[outcome] += 1;
  return counts;
}
