import { type Static, Type } from "@sinclair/typebox";
import { DMARC_POLICIES } from "../../core/domains/dmarc-policies.ts";
import { readAll, existing } from "../../core/errors.ts";
import { FIRST_TIME } from "../../core/time/date-times.ts";
import { NEEDED, WINDOW_DAYS } from "../../flows/reports/advice.ts";
import { type PolicyDeps, policyAdvice } from "../../flows/reports/policy.ts";
import type { DomainLookups } from "../../flows/records/lookups.ts";
import { type Domain, getDomain } from "../../store/domains/domains.ts";
import { listReportSums, type ReportSum } from "../../store/domains/reports.ts";
import { utcDay } from "../../store/projects/usage.ts";
import { ok } from "../routing/answer.ts";
import { rangeEnd } from "../routing/day-or-time.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { DAY_OR_TIME, Nullable, OneOf, PAGE_QUERY, PageOf, showTime, Timestamp } from "../routing/schemas.ts";

const Day = Type.String({ description: "UTC day.", examples: ["2026-01-31"] });
const Policy = OneOf(DMARC_POLICIES);

const ReportRowView = Type.Object(
  {
    id: Type.String(),
    kind: OneOf(["dmarc", "tls"]),
    day: Day,
    reporter: Type.String({
      description: "The domain that is proven to have sent the reports, else the name that they give.",
      examples: ["google.com"],
    }),
    counts: Type.Boolean({
      description:
        "True if the policy advice counts the reports: SPF or DKIM proves that one of DMARC_REPORTERS sent them.",
    }),
    source: Type.String({
      description:
        "DMARC: the address that sent the messages. TLS: the host that received, or empty. `other`: what exceeds the sources of a day.",
      examples: ["192.0.2.1"],
    }),
    result: Type.String({
      description:
        "DMARC: what passed aligned with From, `dkim_and_spf`, `dkim`, `spf`, or `fail`. TLS: `success`, or a type of RFC 8460 §4.3.",
      examples: ["dkim_and_spf"],
    }),
    disposition: Nullable(
      OneOf(["none", "quarantine", "reject"], "What the receiver did with the messages. Null for TLS."),
    ),
    messages: Type.Integer({ minimum: 0, description: "Messages, or sessions for TLS." }),
  },
  { title: "ReportRow" },
);

const PolicyAdviceView = Type.Object(
  {
    now: Nullable(
      OneOf(DMARC_POLICIES, "The published policy. Null if there is none, or the DNS did not answer."),
    ),
    safe: OneOf(DMARC_POLICIES, "The strictest policy that the reports show to be safe."),
    since: Nullable({
      ...Timestamp,
      description: "Begin of the days without trouble. Null without reports.",
    }),
    reasons: Type.Array(Type.String(), {
      description: "What the reports show, and what is missing, in words.",
    }),
    unknownSources: Type.Array(
      Type.Object({
        source: Type.String({ examples: ["198.51.100.7"] }),
        messages: Type.Integer({ minimum: 1 }),
      }),
      {
        description:
          "Addresses whose messages mostly fail: forgers, or services that you forgot. At most 20.",
      },
    ),
    moves: Type.Array(Type.Object({ at: Timestamp, from: Policy, to: Policy, reason: Type.String() }), {
      description: 'The latest moves of a domain with `"dmarc": "auto"`, newest first. At most 20.',
    }),
  },
  { title: "PolicyAdvice" },
);

const ReportsQuery = Type.Object({
  ...PAGE_QUERY,
  kind: Type.Optional(OneOf(["dmarc", "tls"], "`dmarc` if left out.")),
  from: Type.Optional(Type.String({ ...DAY_OR_TIME, description: "First day of the reports." })),
  to: Type.Optional(Type.String({ ...DAY_OR_TIME, description: "Last day of the reports." })),
});

export interface DomainReportDeps extends PolicyDeps {
  lookups: DomainLookups;
}

/** Returns the routes of what receivers report about a domain. */
export function domainReportRoutes(deps: DomainReportDeps): Route[] {
  const { db } = deps;
  const requireDomain = async (senderId: string, id: string): Promise<Domain> => {
    return existing("domain", await getDomain(db, senderId, id));
  };
  return [
    projectRoute({
      method: "GET",
      path: "/v1/domains/:id/reports",
      operationId: "listDomainReports",
      summary: "List what receivers report about a domain",
      description:
        "DMARC aggregate reports (RFC 9990) and TLS reports (RFC 8460), added up by day, reporter, source and result. The rows that arrived last come first. RETENTION_REPORT_DAYS limits how long they stay.",
      scope: "domains:read",
      query: ReportsQuery,
      answers: { 200: PageOf(ReportRowView) },
      async handle({ senderId, params, query, now, page }) {
        await requireDomain(senderId, params.id);
        const [from, to] = readAll(
          () => rangeEnd("from", query.from) ?? FIRST_TIME,
          () => rangeEnd("to", query.to) ?? now,
        );
        const { after, take, answer } = page();
        const { kind = "dmarc" } = query;
        // The end is exclusive.
        const range = {
          domainId: params.id,
          kind,
          from: utcDay(from),
          to: utcDay(Math.max(FIRST_TIME, to - 1)),
        };
        const rows = await listReportSums(db, senderId, range, after, take);
        return ok(answer(rows, showRow, ({ id }) => id));
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/domains/:id/policy-advice",
      operationId: "getPolicyAdvice",
      costly: "lookups",
      summary: "Get which DMARC policy is safe for a domain",
      description: `Judges the reports of the last ${WINDOW_DAYS} days. \`quarantine\` needs ${NEEDED.quarantine.days} days without trouble, \`reject\` ${NEEDED.reject.days}. If mail of known sources fails, \`none\` is safe at once.`,
      scope: "domains:read",
      answers: { 200: PolicyAdviceView },
      async handle({ senderId, params }) {
        const domain = await requireDomain(senderId, params.id);
        const { now, safe, since, reasons, unknownSources } = await policyAdvice(deps, domain);
        const moves = domain.dmarcMoves.map(({ at, ...move }) => ({ at: showTime(at), ...move }));
        const advice = { now, safe, since: showTime(since), reasons, unknownSources, moves };
        return ok(advice satisfies Static<typeof PolicyAdviceView>);
      },
    }),
  ];
}

function showRow({ domainId: _, disposition, ...row }: ReportSum) {
  return { ...row, disposition: disposition === "" ? null : disposition };
}
