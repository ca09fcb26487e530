import { normalizeDomain } from "../../core/addresses.ts";
import { type AggregateReport, OTHER, type ReportRow, reportValue, sumRows, TLS_SUCCESS } from "./report.ts";

/** Maximum number of policies of a report, and of failures of one policy. Further ones are left out. */
export const MAX_POLICIES = 100;
export const MAX_FAILURES = 10_000;

/** The types of failure of RFC 8460 §4.3. Others count as `other`, so that a stranger cannot make up any number. */
const RESULT_TYPES: ReadonlySet<string> = new Set([
  "starttls-not-supported",
  "certificate-host-mismatch",
  "certificate-expired",
  "certificate-not-trusted",
  "validation-failure",
  "tlsa-invalid",
  "dnssec-invalid",
  "dane-required",
  "sts-policy-fetch-error",
  "sts-policy-invalid",
  "sts-webpki-invalid",
]);

type Json = Readonly<Record<string, unknown>>;

/** Reads an SMTP TLS report (RFC 8460 §4); returns one report per domain, or none if the text is no report. */
export function readTlsReport(text: string): AggregateReport[] {
  const report = objectOf(parsed(text));
  const range = objectOf(report["date-range"]);
  const [begin, end] = [timeOf(range["start-datetime"]), timeOf(range["end-datetime"])];
  const reportId = reportValue(textOf(report["report-id"]));
  if (reportId === "" || begin === null || end === null) return [];
  const organization = reportValue(textOf(report["organization-name"]));
  const rows = sumRows();
  for (const policy of listOf(report.policies).slice(0, MAX_POLICIES)) addPolicy(rows.add, objectOf(policy));
  const byDomain = Map.groupBy(rows.rows(), ({ domain }) => domain);
  return [...byDomain].map(([policyDomain, own]) => ({
    ...({ kind: "tls", organization, reportId, begin, end, policyDomain, rows: own } as const),
  }));
}

function addPolicy(add: (row: Omit<ReportRow, "count">, count: number) => void, given: Json): void {
  const policy = objectOf(given.policy);
  const domain = normalizeDomain(textOf(policy["policy-domain"]).replace(/\.$/, ""));
  if (domain === null) return;
  const row = { domain, disposition: "" };
  const summary = objectOf(given.summary);
  add({ ...row, source: "", result: TLS_SUCCESS }, Number(summary["total-successful-session-count"]));
  for (const detail of listOf(given["failure-details"]).slice(0, MAX_FAILURES)) {
    const failure = objectOf(detail);
    const host = textOf(failure["receiving-mx-hostname"]) || textOf(failure["receiving-ip"]);
    const said = textOf(failure["result-type"]).toLowerCase();
    const result = RESULT_TYPES.has(said) ? said : OTHER;
    add({ ...row, source: reportValue(host).toLowerCase(), result }, Number(failure["failed-session-count"]));
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function timeOf(value: unknown): number | null {
  const at = Date.parse(textOf(value));
  return Number.isNaN(at) ? null : at;
}
