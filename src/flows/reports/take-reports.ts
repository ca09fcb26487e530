import { isWithin } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import type { AuthVerdict } from "../../mail/auth/authenticate.ts";
import { provenAuthor } from "../../mail/auth/proven-from.ts";
import type { AggregateReport, ReportRow } from "../../mail/reports/report.ts";
import { type Domain, verifiedDomains } from "../../store/domains/domains.ts";
import { addReport } from "../../store/domains/reports.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { utcDay } from "../../store/projects/usage.ts";
import type { Inspect } from "../mime/reading-tasks.ts";
import { movePolicy, type PolicyDeps } from "./policy.ts";

/** Oldest end of a report that is taken, and the farthest in the future, for clocks that are ahead. Milliseconds. */
export const MAX_AGE_MS = 30 * DAY_MS;
export const MAX_AHEAD_MS = DAY_MS;
/** Longest period of a report, milliseconds. Reports are about a day; some reporters send one a week. */
export const MAX_PERIOD_MS = 8 * DAY_MS;

export interface TakeReportsDeps extends PolicyDeps {
  serviceDomain: string;
  inspect: Inspect;
  /** Domains in From of the reporters whose reports count. */
  dmarcReporters: readonly string[];
}

/** `none`: the message has no report that can be read, or one about the service's own names. */
export type ReportsTaken = "taken" | "none" | "busy";

interface Reporter {
  /** The domain that is proven to have sent the report. Null if none is. */
  name: string | null;
  /** True if that is one of DMARC_REPORTERS. */
  counts: boolean;
}

/**
 * Takes the reports in a message to a mailbox for them. A report about a domain that no project has verified is
 * dropped, and so is one of another time: no project could read it, and strangers could fill the disk with such.
 */
export async function takeReports(
  deps: TakeReportsDeps,
  raw: Uint8Array,
  verdict: Pick<AuthVerdict, "spf" | "dkim">,
): Promise<ReportsTaken> {
  const found = await deps.inspect({ kind: "aggregate", raw });
  if (found === null) return "busy";
  const { reports } = found;
  if (reports.length === 0 || reports.some(({ policyDomain }) => isWithin(policyDomain, deps.serviceDomain)))
    return "none";
  const name = provenAuthor(raw, verdict);
  const reporter = { name, counts: name !== null && deps.dmarcReporters.includes(name) };
  for (const report of reports) await takeReport(deps, report, reporter);
  return "taken";
}

async function takeReport(deps: TakeReportsDeps, report: AggregateReport, reporter: Reporter): Promise<void> {
  const { kind, policyDomain, organization, reportId } = report;
  const facts = { kind, domain: policyDomain, reporter: reporter.name ?? organization, report: reportId };
  const dropped = (reason: string) => log("dmarc").info("a report was dropped", { ...facts, reason });
  if (!isCurrent(report, deps.clock.now())) return dropped("it is too old, too long or in the future");
  const owners = await ownersOf(deps, report);
  if (owners.size === 0) return dropped("no project has verified the domain");
  for (const [domain, rows] of owners) {
    try {
      await addReport(deps.db, sumsOf(report, { domain, rows, reporter, now: deps.clock.now() }));
    } catch (error) {
      if (!isBroken(error, "report_taken") && !isBroken(error, "too_many_reports")) throw error;
      dropped(isBroken(error, "report_taken") ? "it was taken before" : "there are too many of the day");
      continue;
    }
    log("dmarc").info("a report was taken", { ...facts, id: domain.id, counts: reporter.counts });
    if (kind === "dmarc" && reporter.counts) await movePolicy(deps, domain.senderId, domain.id);
  }
}

function isCurrent({ begin, end }: AggregateReport, now: number): boolean {
  return begin <= end && end - begin <= MAX_PERIOD_MS && end >= now - MAX_AGE_MS && end <= now + MAX_AHEAD_MS;
}

/**
 * Returns the domains that a report is about, with its rows. The owner of the policy gets all of it. If no project has that domain,
 * each row belongs to the nearest domain at or above its own.
 */
async function ownersOf(
  { db }: TakeReportsDeps,
  { policyDomain, rows }: AggregateReport,
): Promise<Map<Domain, ReportRow[]>> {
  const names = new Set([policyDomain, ...rows.flatMap(({ domain }) => namesBetween(domain, policyDomain))]);
  const domains = await verifiedDomains(db, [...names]);
  const named = (name: string): Domain[] => domains.filter((domain) => domain.name === name);
  const owners = new Map<Domain, ReportRow[]>();
  const policyOwners = named(policyDomain);
  for (const row of rows) {
    const nearest = namesBetween(row.domain, policyDomain)
      .map(named)
      .find((found) => found.length > 0);
    for (const owner of policyOwners.length > 0 ? policyOwners : (nearest ?? [])) {
      const own = owners.get(owner) ?? [];
      own.push(row);
      owners.set(owner, own);
    }
  }
  return owners;
}

/** Returns a name and those above it, down to the policy's domain. */
function namesBetween(name: string, policyDomain: string): string[] {
  const names: string[] = [];
  for (let at = name; isWithin(at, policyDomain); at = at.slice(at.indexOf(".") + 1)) names.push(at);
  return names;
}

function sumsOf(
  { kind, organization, reportId, begin, end }: AggregateReport,
  {
    domain,
    rows,
    reporter,
    now,
  }: { domain: Domain; rows: readonly ReportRow[]; reporter: Reporter; now: number },
) {
  return {
    domainId: domain.id,
    kind,
    reportId,
    counts: reporter.counts,
    reporter: reporter.name ?? organization,
    // Days of reporters begin in other time zones, but their middle is in the UTC day of the same name.
    day: utcDay((begin + end) / 2),
    rows: rows
      .toSorted((a, b) => b.count - a.count)
      .map(({ source, result, disposition, count: messages }) => {
        return { id: newId("rpt", now), source, result, disposition, messages };
      }),
  };
}
