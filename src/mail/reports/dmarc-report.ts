import { type SaxesOptions, SaxesParser } from "saxes";
import { isWithin, normalizeDomain } from "../../core/addresses.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { plainAddress } from "../../core/networks.ts";
import { SECOND_MS } from "../../core/time/units.ts";
import {
  type AggregateReport,
  DISPOSITIONS,
  MAX_VALUE_CHARS,
  OTHER,
  type ReportRow,
  reportValue,
  sumRows,
} from "./report.ts";

/** Maximum depth of elements. A report has six. */
export const MAX_DEPTH = 32;
/** Maximum number of violations of XML's rules that are overlooked, such as an unknown entity or a `<` in a name. */
export const MAX_FAULTS = 20;
/** An ampersand that begins no reference. The parser would read on to the next semicolon. */
const BARE_AMPERSAND = /&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]\w{0,30});)/gi;
/** Characters that are parsed before other tasks of the thread run. */
const STEP_CHARS = 256 * 1024;

/** The outermost element of a report. One reporter has it inside another, which never ends. */
const REPORT = "feedback";
/** Elements whose text is kept, by their path below that. */
const REPORT_FIELDS = [
  "report_metadata/org_name",
  "report_metadata/report_id",
  "report_metadata/date_range/begin",
  "report_metadata/date_range/end",
  "policy_published/domain",
] as const;
const RECORD_FIELDS = [
  "record/row/source_ip",
  "record/row/count",
  "record/row/policy_evaluated/disposition",
  "record/row/policy_evaluated/dkim",
  "record/row/policy_evaluated/spf",
  "record/identifiers/header_from",
] as const;
type Field = (typeof REPORT_FIELDS)[number] | (typeof RECORD_FIELDS)[number];
const FIELDS: ReadonlySet<string> = new Set([...REPORT_FIELDS, ...RECORD_FIELDS]);

/**
 * Reads a DMARC aggregate report (RFC 9990 §3, RFC 7489 Appendix C); null if the text is none. Names of elements count without their
 * namespace, of which reporters use several. A document type ends the reading, so no entity is ever expanded or fetched.
 */
export async function readDmarcReport(text: string): Promise<AggregateReport | null> {
  const xml = text.replace(BARE_AMPERSAND, "&amp;");
  const values = new Map<Field, string>();
  const rows = sumRows();
  const parser = reportParser(values, () => {
    const row = rowOf(values);
    if (row !== null) rows.add(row, Number(values.get("record/row/count")));
    for (const field of RECORD_FIELDS) values.delete(field);
  });
  try {
    for (let at = 0; at < xml.length; at += STEP_CHARS) {
      parser.write(xml.slice(at, at + STEP_CHARS));
      await yieldToEventLoop();
    }
    parser.close();
  } catch {
    return null;
  }
  return reportOf(values, rows.rows());
}

/** Makes a parser that collects the values, and calls `onRecord` at the end of each record. It throws to end the reading. */
function reportParser(values: Map<Field, string>, onRecord: () => void): SaxesParser<SaxesOptions> {
  const parser = new SaxesParser({});
  const path: string[] = [];
  let faults = 0;
  const place = (): string => path.slice(path.lastIndexOf(REPORT) + 1).join("/");
  parser.on("doctype", () => stop("a report has no document type"));
  parser.on("error", () => {
    if (++faults > MAX_FAULTS) stop("too many faults");
  });
  parser.on("opentag", ({ name }) => {
    path.push(name.slice(name.indexOf(":") + 1).toLowerCase());
    if (path.length > MAX_DEPTH) stop("too deep");
  });
  parser.on("text", (text) => {
    const field = place();
    if (!FIELDS.has(field)) return;
    const before = values.get(field as Field) ?? "";
    values.set(field as Field, (before + text).slice(0, MAX_VALUE_CHARS));
  });
  parser.on("closetag", () => {
    if (place() === "record") onRecord();
    path.pop();
  });
  return parser;
}

function stop(why: string): never {
  throw new Error(why);
}

function domainOf(text: string | undefined): string | null {
  return text === undefined ? null : normalizeDomain(text.trim().replace(/\.$/, ""));
}

function isPass(text: string | undefined): boolean {
  return text?.trim().toLowerCase() === "pass";
}

/** Returns the row of the record whose values were read last. Some reporters leave out the domain in From if it is that of the policy. */
function rowOf(values: ReadonlyMap<Field, string>): Omit<ReportRow, "count"> | null {
  const domain =
    domainOf(values.get("record/identifiers/header_from")) ?? domainOf(values.get("policy_published/domain"));
  if (domain === null) return null;
  const dkim = isPass(values.get("record/row/policy_evaluated/dkim"));
  const spf = isPass(values.get("record/row/policy_evaluated/spf"));
  const said = values.get("record/row/policy_evaluated/disposition")?.trim().toLowerCase();
  return {
    domain,
    source: plainAddress(values.get("record/row/source_ip")?.trim() ?? "") ?? OTHER,
    result: dkim && spf ? "dkim_and_spf" : dkim ? "dkim" : spf ? "spf" : "fail",
    // RFC 9990 also has `pass`: nothing was done.
    disposition: DISPOSITIONS.find((one) => one === said) ?? "none",
  };
}

/** Returns the report; null if one of its parts is missing. Rows of domains that the policy cannot cover are left out. */
function reportOf(values: ReadonlyMap<Field, string>, rows: ReportRow[]): AggregateReport | null {
  const policyDomain = domainOf(values.get("policy_published/domain"));
  const reportId = reportValue(values.get("report_metadata/report_id") ?? "");
  const [begin, end] = [
    timeOf(values.get("report_metadata/date_range/begin")),
    timeOf(values.get("report_metadata/date_range/end")),
  ];
  if (policyDomain === null || reportId === "" || begin === null || end === null) return null;
  return {
    kind: "dmarc",
    organization: reportValue(values.get("report_metadata/org_name") ?? ""),
    reportId,
    begin,
    end,
    policyDomain,
    rows: rows.filter(({ domain }) => isWithin(domain, policyDomain)),
  };
}

function timeOf(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,11}(?:\.\d{1,9})?$/.test(text.trim())
    ? Math.floor(Number(text)) * SECOND_MS
    : null;
}
