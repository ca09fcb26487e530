import type { Variant } from "../../core/audience/ab-test.ts";
import type { Db, Statement } from "../engine/client.ts";
import { BROADCAST_FIGURES, type BroadcastFigures, NO_FIGURES } from "./broadcast-figures.ts";

/** The outcomes of the messages that test one subject. `recipients`: messages that were made. */
export type VariantFigures = BroadcastFigures & { recipients: number };

/** Returns the statements that store which subject each message of a test has, after the messages in the same write. */
export function recordVariants(
  broadcastId: string,
  messages: readonly { id: string; variant: Variant }[],
): Statement[] {
  if (messages.length === 0) return [];
  const listed = JSON.stringify(messages);
  const fields = "j.value ->> 'id', ?, j.value ->> 'variant' FROM json_each(?) j";
  return [
    {
      sql: `INSERT INTO broadcast_variants (message_id, broadcast_id, variant) SELECT ${fields}`,
      args: [broadcastId, listed],
    },
    {
      sql: `INSERT INTO broadcast_variant_figures (broadcast_id, variant, recipients)
        SELECT ?, j.value ->> 'variant' AS variant, COUNT(*) FROM json_each(?) j WHERE TRUE GROUP BY variant
        ON CONFLICT (broadcast_id, variant) DO UPDATE SET recipients = recipients + excluded.recipients`,
      args: [broadcastId, listed],
    },
  ];
}

/** Returns the figures of both subjects of a broadcast. */
export async function figuresOfVariants(
  db: Db,
  broadcastId: string,
): Promise<Record<Variant, VariantFigures>> {
  const rows = await db.all<VariantFigures & { variant: Variant }>(
    `SELECT variant, recipients, ${BROADCAST_FIGURES.join(", ")} FROM broadcast_variant_figures WHERE broadcast_id = ?`,
    [broadcastId],
  );
  const none: VariantFigures = { recipients: 0, ...NO_FIGURES };
  const known = rows.map(({ variant, ...figures }) => [variant, figures] as const);
  return { a: none, b: none, ...Object.fromEntries(known) };
}
