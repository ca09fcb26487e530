import { idCeiling } from "../../core/ids.ts";
import { wellFormedJson } from "../../core/text.ts";
import type { Db, Statement } from "../engine/client.ts";
import { flag, plain, table } from "../engine/columns.ts";
import { requireGuard } from "../engine/guards.ts";
import type { Place } from "../engine/place.ts";

/** Maximum number of reports of one kind about one domain and day: of those that count, and of others. */
export const MAX_COUNTED_REPORTS = 500;
export const MAX_OTHER_REPORTS = 50;
/** Maximum number of rows that they make. What exceeds it is added to `other`. */
export const MAX_COUNTED_ROWS = 200;
export const MAX_OTHER_ROWS = 20;
/** The source and reporter of what exceeds a limit. */
const OTHER = "other";

/** Messages or TLS sessions of one day, source and result, of all reports of one organization. */
export interface ReportSum {
  id: string;
  domainId: string;
  kind: "dmarc" | "tls";
  /** UTC, as `YYYY-MM-DD`. */
  day: string;
  /** True if it counts for advice: one of DMARC_REPORTERS is proven to have sent it. */
  counts: boolean;
  reporter: string;
  source: string;
  result: string;
  disposition: string;
  messages: number;
}

const ROWS = table<ReportSum>("report_rows", {
  id: plain("id"),
  domainId: plain("domain_id"),
  kind: plain("kind"),
  day: plain("day"),
  counts: flag("counts"),
  reporter: plain("reporter"),
  source: plain("source"),
  result: plain("result"),
  disposition: plain("disposition"),
  messages: plain("messages"),
});

/** Returns whether a report about any domain covers a day since that one, as `YYYY-MM-DD`. */
export async function hasReportsSince(db: Db, day: string): Promise<boolean> {
  return (await db.first("SELECT 1 FROM report_rows WHERE day >= ? LIMIT 1", [day])) !== null;
}

/** A report about one domain. */
export interface TakenReport extends Pick<ReportSum, "domainId" | "kind" | "day" | "counts" | "reporter"> {
  reportId: string;
  /** The rows with new ids, the largest first. */
  rows: readonly Pick<ReportSum, "id" | "source" | "result" | "disposition" | "messages">[];
}

/**
 * Adds a report to the sums of its domain. It breaks the guard `report_taken` if it is in them already, and
 * `too_many_reports` if too many are.
 */
export async function addReport(db: Db, report: TakenReport): Promise<void> {
  const { domainId, kind, day, counts, reporter, reportId, rows } = report;
  const place = [domainId, kind, Number(counts)];
  await db.write([
    requireGuard("report_taken", {
      sql: `NOT EXISTS (SELECT 1 FROM taken_reports WHERE domain_id = ? AND kind = ? AND counts = ?
              AND reporter = ? AND report_id = ?)`,
      args: [...place, reporter, reportId],
    }),
    requireGuard("too_many_reports", {
      sql: "(SELECT COUNT(*) FROM taken_reports WHERE domain_id = ? AND kind = ? AND counts = ? AND day = ?) < ?",
      args: [...place, day, counts ? MAX_COUNTED_REPORTS : MAX_OTHER_REPORTS],
    }),
    {
      sql: "INSERT INTO taken_reports (domain_id, kind, counts, reporter, report_id, day) VALUES (?, ?, ?, ?, ?, ?)",
      args: [...place, reporter, reportId, day],
    },
    addRows(report, wellFormedJson(rows)),
  ]);
}

function addRows({ domainId, kind, day, counts, reporter }: TakenReport, rows: string): Statement {
  const named = `(SELECT COUNT(*) FROM report_rows
      WHERE domain_id = ?1 AND kind = ?2 AND counts = ?3 AND day = ?4) + key < ?5`;
  return {
    sql: `INSERT INTO report_rows (id, domain_id, kind, day, counts, reporter, source, result, disposition, messages)
      SELECT value->>'id', ?1, ?2, ?4, ?3, iif(${named}, ?6, '${OTHER}'), iif(${named}, value->>'source', '${OTHER}'),
          value->>'result', value->>'disposition', value->>'messages'
        FROM json_each(?7) WHERE true
      ON CONFLICT (domain_id, kind, day, counts, reporter, source, result, disposition)
        DO UPDATE SET messages = messages + excluded.messages`,
    args: [domainId, kind, Number(counts), day, counts ? MAX_COUNTED_ROWS : MAX_OTHER_ROWS, reporter, rows],
  };
}

const OF_PROJECT = "domain_id = (SELECT id FROM domains WHERE sender_id = ? AND id = ?)";

/** The sums of one kind between two days, both included. */
export interface ReportRange extends Pick<ReportSum, "kind"> {
  domainId: string;
  from: string;
  to: string;
}

/** Returns at most `take` of the sums of a project's domain, the latest first, at a place. */
export function listReportSums(
  db: Db,
  senderId: string,
  { domainId, kind, from, to }: ReportRange,
  place: Place,
  take: number,
): Promise<ReportSum[]> {
  const where = `${OF_PROJECT} AND kind = ? AND day >= ? AND day <= ?`;
  const args = [senderId, domainId, kind, from, to];
  return ROWS.page(db, { where, args, place, ceiling: idCeiling("rpt"), take });
}

/** The mail of a source on one day. */
export interface SourceDay {
  day: string;
  source: string;
  messages: number;
  /** Those that failed DMARC. */
  failed: number;
}

/** Returns the mail of a project's domain from a day on, as the reports that count have it, oldest first. */
export function mailBySource(
  db: Db,
  senderId: string,
  { domainId, from }: { domainId: string; from: string },
): Promise<SourceDay[]> {
  return db.all<SourceDay>(
    `SELECT day, source, SUM(messages) AS messages, SUM(iif(result = 'fail', messages, 0)) AS failed
      FROM report_rows WHERE ${OF_PROJECT} AND kind = 'dmarc' AND day >= ? AND counts = 1
      GROUP BY day, source ORDER BY day`,
    [senderId, domainId, from],
  );
}

/** Deletes at most `limit` sums and reports each of days before that one. Returns how many it has deleted of the larger part. */
export async function deleteOldReports(db: Db, before: string, limit: number): Promise<number> {
  const key = "domain_id, kind, counts, reporter, report_id";
  const written = await db.write([
    {
      sql: "DELETE FROM report_rows WHERE id IN (SELECT id FROM report_rows WHERE day < ? LIMIT ?)",
      args: [before, limit],
    },
    {
      sql: `DELETE FROM taken_reports WHERE (${key}) IN (SELECT ${key} FROM taken_reports WHERE day < ? LIMIT ?)`,
      args: [before, limit],
    },
  ]);
  return Math.max(...written.map(({ changes }) => changes));
}
