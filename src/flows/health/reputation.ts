import { DAY_MS } from "../../core/time/units.ts";
import { hasReportsSince } from "../../store/domains/reports.ts";
import { utcDay } from "../../store/projects/usage.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  countOverLimits,
  nearSuspension,
  type ReputationLimits,
  settledInWeek,
} from "../../store/projects/reputation.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

const RATED = { minSettled: 500, minComplainants: 2, bouncedPerMille: 0, complainedPerMille: 0 };
/** Rates that large providers name as too high and as the aim, with the words of a finding. */
const COMPLAINTS = {
  high: [{ ...RATED, complainedPerMille: 3 }, "0.3 % complaints"],
  aim: [{ ...RATED, complainedPerMille: 1 }, "0.1 % complaints"],
} as const;
const BOUNCES = {
  high: [{ ...RATED, bouncedPerMille: 50 }, "5 % hard bounces"],
  aim: [{ ...RATED, bouncedPerMille: 20 }, "2 % hard bounces"],
} as const;
/** Maximum number of projects that the finding counts. */
const MAX_COUNTED = 1000;
const NO_DATABASE = "Check that the database is reachable.";

export interface ReputationParts {
  db: () => Db;
  clock: Clock;
  limits: ReputationLimits;
}

/**
 * Returns the checks of a week's complaints and hard bounces, and of projects halfway to a suspension. They name no project,
 * because every account may read them.
 */
export function reputationChecks(parts: ReputationParts): Check[] {
  const common = { needsDatabase: true, fix: NO_DATABASE };
  return [
    {
      ...common,
      name: "reputation",
      run: async () =>
        (await rated(
          parts,
          COMPLAINTS,
          "Read GET /v1/stats by project: stop mail to people who never open.",
        )) ?? suspensions(parts),
    },
    {
      ...common,
      name: "hard bounces",
      run: async () =>
        (await rated(
          parts,
          BOUNCES,
          "Read GET /v1/stats by project: check addresses when people enter them, and stop mail to old lists.",
        )) ?? ok("Less than 2 % of a week's mail of each project bounced for good."),
    },
  ];
}

/** Returns what is wrong with the rates of projects; null if each is below the aim. */
async function rated(
  { db, clock }: ReputationParts,
  { high, aim }: typeof COMPLAINTS | typeof BOUNCES,
  advice: string,
): Promise<Finding | null> {
  const [over, above] = await Promise.all(
    [high, aim].map(([rates]) => countOverLimits(db(), rates, clock.now())),
  );
  if (over !== undefined && over > 0) return fail(`${projects(over)} above ${high[1]} in a week.`, advice);
  if (above !== undefined && above > 0) return warn(`${projects(above)} above ${aim[1]} in a week.`, advice);
  return null;
}

async function suspensions({ db, clock, limits }: ReputationParts): Promise<Finding> {
  const { length: near } = await nearSuspension(db(), limits, clock.now(), MAX_COUNTED);
  if (near === 0) return ok("No project is near suspension.");
  return warn(
    `${projects(near)} near suspension for bounces or complaints.`,
    "Search the log for `sender near suspension`, and read GET /v1/stats of that project.",
  );
}

function projects(count: number): string {
  return `${count} ${count === 1 ? "project is" : "projects are"}`;
}

/** Recipients of a week from which on some receiver sends DMARC reports. */
const REPORTED_FROM = 1000;
/** Reports come a day late, so a week is looked back. */
const REPORT_DAYS = 7;

/**
 * Warns if much mail leaves and no receiver reports by DMARC or TLS-RPT what becomes of it.
 */
export function feedbackCheck({ db, clock }: Omit<ReputationParts, "limits">): Check {
  return {
    name: "feedback",
    needsDatabase: true,
    fix: NO_DATABASE,
    async run(): Promise<Finding> {
      const now = clock.now();
      const [settled, hasReports] = await Promise.all([
        settledInWeek(db(), now),
        hasReportsSince(db(), utcDay(now - REPORT_DAYS * DAY_MS)),
      ]);
      if (settled >= REPORTED_FROM && !hasReports)
        return warn(
          `No DMARC or TLS report has arrived in ${REPORT_DAYS} days, although receivers send them every day.`,
          "Check that port 25 takes mail for dmarc@ and tls-reports@ of the service domain, and that the domains' DMARC records name them in rua.",
        );
      return ok(hasReports ? "Reports arrive." : "Too little mail leaves to expect reports.");
    },
  };
}
