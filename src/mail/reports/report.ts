/** Kinds of report that receivers send about all mail of a day: DMARC aggregate (RFC 9990) and SMTP TLS (RFC 8460). */
export const REPORT_KINDS = ["dmarc", "tls"] as const;
export type ReportKind = (typeof REPORT_KINDS)[number];

/** The action that the receiver took on a message. */
export const DISPOSITIONS = ["none", "quarantine", "reject"] as const;
/** The result of TLS sessions that succeeded. The rest have a type of RFC 8460 §4.3. */
export const TLS_SUCCESS = "success";

/** The source or result of what exceeds a limit, or is none that we know. */
export const OTHER = "other";
/** Maximum number of rows with different values that are kept of a report. The sources of further ones are `other`. */
export const MAX_ROWS = 2000;
/** Maximum number of domains in From that are counted separately in a report. Rows of further ones are left out. */
export const MAX_DOMAINS = 50;
/** Maximum characters of a value that are kept. */
export const MAX_VALUE_CHARS = 255;
/** Maximum count of one row. A larger one is no real count. */
const MAX_COUNT = 1_000_000_000;

/** Messages or sessions of one source with one result. */
export interface ReportRow {
  /** The domain in From, or the domain that mail was sent to. */
  domain: string;
  /** DMARC: the address that sent. TLS: the host or address that received, if the report names it. */
  source: string;
  result: string;
  /** Empty for TLS. */
  disposition: string;
  count: number;
}

/** A report as its sender wrote it. Nothing in it is proven. */
export interface AggregateReport {
  kind: ReportKind;
  organization: string;
  reportId: string;
  /** Milliseconds. */
  begin: number;
  end: number;
  /** DMARC: the domain whose policy was applied. TLS: the domain mail was sent to. */
  policyDomain: string;
  rows: ReportRow[];
}

/** Adds up rows within the limits of a report. */
export interface RowSum {
  add(row: Omit<ReportRow, "count">, count: number): void;
  rows(): ReportRow[];
}

/** Makes an empty sum. */
export function sumRows(): RowSum {
  const rows = new Map<string, ReportRow>();
  const domains = new Set<string>();
  const keyOf = ({ domain, source, result, disposition }: Omit<ReportRow, "count">): string =>
    JSON.stringify([domain, source, result, disposition]);
  return {
    add(given, count) {
      if (!(count >= 1 && count <= MAX_COUNT)) return;
      if (!domains.has(given.domain) && domains.size >= MAX_DOMAINS) return;
      domains.add(given.domain);
      const isNew = !rows.has(keyOf(given));
      const row = isNew && rows.size >= MAX_ROWS ? { ...given, source: OTHER } : given;
      const known = rows.get(keyOf(row));
      if (known === undefined) rows.set(keyOf(row), { ...row, count: Math.floor(count) });
      else known.count += Math.floor(count);
    },
    rows: () => [...rows.values()],
  };
}

/** Returns a value of a report on one line, cut to the limit. */
export function reportValue(text: string): string {
  return text
    .slice(0, MAX_VALUE_CHARS)
    .replace(/[\u0000-\u001f\u007f]+/g, " ")
    .trim();
}
