import type { Reached, Variant } from "../../core/audience/ab-test.ts";
import type { Db, Statement } from "../engine/client.ts";
import { BROADCAST_FIGURES, type BroadcastFigures } from "./broadcast-figures.ts";

/** What became of the messages that test one subject. `recipients`: messages that were made. */
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

const NONE: VariantFigures = {
  recipients: 0,
  ...(Object.fromEntries(BROADCAST_FIGURES.map((figure) => [figure, 0])) as BroadcastFigures),
};

/** Returns the figures of both subjects of a broadcast. */
export async function figuresOfVariants(
  db: Db,
  broadcastId: string,
): Promise<Record<Variant, VariantFigures>> {
  const rows = await db.all<VariantFigures & { variant: Variant }>(
    `SELECT variant, recipients, ${BROADCAST_FIGURES.join(", ")} FROM broadcast_variant_figures WHERE broadcast_id = ?`,
    [broadcastId],
  );
  const of = (name: Variant): VariantFigures => {
    const { variant: _, ...figures } = rows.find(({ variant }) => variant === name) ?? {
      variant: name,
      ...NONE,
    };
    return figures;
  };
  return { a: of("a"), b: of("b") };
}

/** Returns the figures that decide a test. */
export function reachedBy({ sent, delivered, opened, clicked }: VariantFigures): Reached {
  return { arrived: Math.max(sent, delivered), opened, clicked };
}
