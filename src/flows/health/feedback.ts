import { DAY_MS } from "../../core/time/units.ts";
import { hasReportsSince } from "../../store/domains/reports.ts";
import type { Store } from "../../store/engine/client.ts";
import { weekOfAll } from "../../store/projects/reputation.ts";
import { utcDay } from "../../store/projects/usage.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

/** Recipients of a week from which on some receiver sends DMARC reports. */
const REPORTED_FROM = 1000;
/** Recipients of a week from which on someone complains. */
const COMPLAINED_FROM = 5000;
/** Reports come a day late, so a week is looked back. */
const REPORT_DAYS = 7;

export interface FeedbackParts extends Omit<Store, "db"> {
  db: () => Store["db"];
}

/** Warns if much mail leaves and nobody tells us what becomes of it: no DMARC or TLS reports, or no complaint at all. */
export function feedbackCheck({ db, clock }: FeedbackParts): Check {
  return {
    name: "feedback",
    needsDatabase: true,
    fix: "Check that the database is reachable.",
    async run(): Promise<Finding> {
      const now = clock.now();
      const [{ settled, complained }, hasReports] = await Promise.all([
        weekOfAll(db(), now),
        hasReportsSince(db(), utcDay(now - REPORT_DAYS * DAY_MS)),
      ]);
      if (settled >= REPORTED_FROM && !hasReports)
        return warn(
          `No DMARC or TLS report has arrived in ${REPORT_DAYS} days, although receivers send them every day.`,
          "Check that port 25 takes mail for dmarc@ and tls-reports@ of the service domain, and that the domains' DMARC records name them in rua.",
        );
      if (settled >= COMPLAINED_FROM && complained === 0)
        return warn(
          `No complaint has arrived, of ${settled} recipients in a week. Probably the service is not enrolled in feedback loops.`,
          "Enrol at https://senders.yahooinc.com/complaint-feedback-loop/ and https://sendersupport.olc.protection.outlook.com/snds/.",
        );
      return ok(hasReports ? "Reports arrive." : "Too little mail leaves to expect reports.");
    },
  };
}
