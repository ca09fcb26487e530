import type { Db, Guard, Statement } from "../engine/client.ts";

/** The outcomes that are counted by provider. */
export const PROVIDER_FIGURES = ["delivered", "delayed", "bounced", "complained"] as const;
export type ProviderFigure = (typeof PROVIDER_FIGURES)[number];

/** Outcomes of a project's mail to a provider. `provider` is the name of its lane. */
export type ProviderCounts = Readonly<Record<ProviderFigure, number>> & { provider: string };

const COUNT = Object.fromEntries(
  PROVIDER_FIGURES.map((figure) => [
    figure,
    (guard: string) =>
      `INSERT INTO stats_providers (sender_id, day, provider, ${figure}) SELECT ?, ?, ?, 1 WHERE ${guard}
        ON CONFLICT (sender_id, day, provider) DO UPDATE SET ${figure} = ${figure} + 1`,
  ]),
) as Record<ProviderFigure, (guard: string) => string>;

/** Returns the statement that counts an outcome. @param day days since 1970, UTC */
export function countForProvider(
  { senderId, provider, day }: { senderId: string; provider: string; day: number },
  figure: ProviderFigure,
  guard: Guard,
): Statement {
  return { sql: COUNT[figure](guard.sql), args: [senderId, day, provider, ...guard.args] };
}

const SUMS = PROVIDER_FIGURES.map((figure) => `SUM(${figure}) AS ${figure}`).join(", ");

/** Returns the outcomes of all projects by provider on the UTC days from `fromDay` to `toDay`, for the operator. */
export function providerCountsOfAll(db: Db, fromDay: number, toDay: number): Promise<ProviderCounts[]> {
  return db.all<ProviderCounts>(
    `SELECT provider, ${SUMS} FROM stats_providers WHERE day >= ? AND day <= ? GROUP BY provider ORDER BY provider`,
    [fromDay, toDay],
  );
}

/** Returns the project's outcomes by provider on the UTC days from `fromDay` to `toDay`, those with most mail first. */
export function providerCounts(
  db: Db,
  senderId: string,
  fromDay: number,
  toDay: number,
): Promise<ProviderCounts[]> {
  // A provider is one of our table, so these are few.
  return db.all<ProviderCounts>(
    `SELECT provider, ${SUMS} FROM stats_providers WHERE sender_id = ? AND day >= ? AND day <= ?
      GROUP BY provider ORDER BY SUM(delivered + delayed + bounced) DESC, provider`,
    [senderId, fromDay, toDay],
  );
}
