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

/** Rates that large providers name as too high, and as the aim. */
const TOO_HIGH = { minSettled: 500, bouncedPerMille: 50, complainedPerMille: 3, minComplainants: 2 };
const AIM = { minSettled: 500, bouncedPerMille: 20, complainedPerMille: 1, minComplainants: 2 };
/** Maximum number of projects that the finding counts. */
const MAX_COUNTED = 1000;
const ADVICE =
  "Read GET /v1/stats by project: stop mail to addresses that bounce, and to people who never open.";

export interface ReputationParts {
  db: () => Db;
  clock: Clock;
  limits: ReputationLimits;
}

/** Warns if projects are halfway to a suspension. It names none, because every account may read it. */
export function reputationCheck({ db, clock, limits }: ReputationParts): Check {
  return {
    name: "reputation",
    needsDatabase: true,
    fix: "Check that the database is reachable.",
    async run() {
      const [high, above] = await Promise.all(
        [TOO_HIGH, AIM].map((rates) => countOverLimits(db(), rates, clock.now())),
      );
      if (high !== undefined && high > 0)
        return fail(`${projects(high)} above 0.3 % complaints or 5 % hard bounces in a week.`, ADVICE);
      const { length: near } = await nearSuspension(db(), limits, clock.now(), MAX_COUNTED);
      if (near === 0 && above !== undefined && above > 0)
        return warn(`${projects(above)} above 0.1 % complaints or 2 % hard bounces in a week.`, ADVICE);
      if (near === 0) return ok("No project is near suspension.");
      const message = `${projects(near)} near suspension for bounces or complaints.`;
      return warn(
        message,
        "Search the log for `sender near suspension`, and read GET /v1/stats of that project.",
      );
    },
  };
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
    fix: "Check that the database is reachable.",
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
