import { Type } from "@sinclair/typebox";
import type { Domain } from "../../store/domains/domains.ts";
import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import { type Diagnosed, RECORD_STATUSES } from "../../flows/domains/diagnose.ts";
import { DELEGATION_STATUSES, delegationOf } from "../../flows/domains/delegation.ts";
import {
  authHealth,
  RECOMMENDED_PURPOSES,
  recommendedRecords,
  sendingRecords,
} from "../../flows/records/records.ts";
import type { Warning } from "../routing/answer.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";
import type { Checking } from "../../flows/domains/checking.ts";
import { ShownRouteIds } from "./route-ids.ts";

const RECORD = {
  type: OneOf(["CNAME", "TXT", "MX"]),
  name: Type.String({ description: "DNS name to publish at." }),
  value: Type.String(),
  priority: Type.Optional(Type.Integer({ description: "Present on MX records." })),
  purpose: OneOf(["dkim", "spf", "dmarc", "inbound", ...RECOMMENDED_PURPOSES]),
  verified: Type.Boolean({ description: "False until the record resolves." }),
};
/** A record to publish. */
export const RecordView = Type.Object(RECORD, { title: "DnsRecord" });

const CheckedRecordView = Type.Object(
  {
    ...RECORD,
    status: OneOf(
      RECORD_STATUSES,
      "`spreading`: not at every name server, or not in every cache yet. `unknown`: the DNS did not answer.",
    ),
    found: Type.Array(Type.String(), { description: "The values in the DNS now, at most 10." }),
    problem: Nullable(Type.String({ description: "What is wrong, in words. Null if nothing is." })),
    fix: Nullable(
      Type.String({
        description:
          "The value to publish. For a domain with an SPF record it is that record with ours merged in. Null if nothing is wrong.",
      }),
    ),
  },
  { title: "CheckedDnsRecord" },
);

/** Meaning of an empty list of a domain's routes. */
export const NO_ROUTE_IDS = "those of the project";

/** The mode in which the DMARC policy of a delegated domain moves. */
export const DmarcMode = OneOf(
  ["manual", "auto"],
  "Of delegated domains alone. `manual`: the zone publishes `p=none`. `auto`: the policy becomes `quarantine` and then `reject` when reports show that this is safe, and `none` at once when they show that mail of yours fails.",
);

/** The switch by which names below a delegated domain receive too. */
export const Wildcard = Type.Boolean({
  description:
    "Of delegated domains alone. If true, every name below the domain that has no records receives mail too, without a change of DNS: inboxes may be at `support@any.example.com` and `*@any.example.com`. Mail from there is signed by the domain. Turning it off while there are such inboxes is 409.",
});

const Health = OneOf(["verified", "pending", "failing"]);
const DOMAIN = {
  id: Type.String(),
  domain: Type.String(),
  status: OneOf(["pending", "verified"]),
  verifiedBy: Nullable(
    OneOf(
      ["dns", "capture"],
      "`capture`: the service is in capture mode, and the name is for tests. Null if the domain is pending.",
    ),
  ),
  authHealth: Type.Object({ dkim: Health, spf: Health, dmarc: Health }),
  receiving: Type.Boolean(),
  routeIds: ShownRouteIds(NO_ROUTE_IDS),
  delegation: Type.Optional(
    Type.Object(
      {
        status: OneOf(
          DELEGATION_STATUSES,
          "`active`: the last check found the NS record, and every record of the domain counts as published. `failing`: it was found before.",
        ),
        records: Type.Array(
          Type.Object(
            {
              type: OneOf(["NS"]),
              name: Type.String({ description: "DNS name to publish at, in the zone above the domain." }),
              value: Type.String(),
            },
            { title: "DelegationRecord" },
          ),
        ),
      },
      { title: "Delegation", description: "Present if the service's name server holds the domain's zone." },
    ),
  ),
  dmarc: Type.Optional(DmarcMode),
  wildcard: Type.Optional(Wildcard),
  verifiedAt: Nullable(Timestamp),
  checkedAt: Nullable(Timestamp),
  createdAt: Timestamp,
};
const RECOMMENDED =
  "Records that improve how mail is received. Sending does not wait for them. `return_path`: bounces return to the domain itself, so that SPF passes aligned with From. `links`: tracked links and unsubscribe links lead to `links.` of the domain, which has its own certificate. Only if the service has hosts for domains, and needs both records.";
/** A domain. */
export const DomainView = Type.Object(
  {
    ...DOMAIN,
    records: Type.Array(RecordView),
    recommended: Type.Array(RecordView, { description: RECOMMENDED }),
  },
  { title: "Domain" },
);
const SpfView = Type.Object(
  {
    result: OneOf(
      ["pass", "neutral", "softfail", "fail", "none", "temperror", "permerror"],
      "What receivers find for mail from our addresses (RFC 7208 §2.6), the worst of them.",
    ),
    lookups: Type.Integer({ description: "DNS lookups that the record needs. Receivers stop after 10." }),
    voidLookups: Type.Integer({ description: "Those without a result. Receivers stop after 2." }),
    problem: Nullable(Type.String({ description: "What is wrong, in words. Null if nothing is." })),
    fix: Nullable(Type.String({ description: "The record to publish. Null if nothing is wrong." })),
  },
  { title: "SpfEvaluation" },
);

/** A domain after a check of its records. */
export const CheckedDomainView = Type.Object(
  {
    ...DOMAIN,
    records: Type.Array(CheckedRecordView),
    recommended: Type.Array(CheckedRecordView, { description: RECOMMENDED }),
    spf: SpfView,
    warnings: Type.Array(Type.String(), {
      description:
        "What some receivers refuse or mind, each with its fix. Examples: a domain without MX and address, DMARC without reports, a signed test message that does not pass.",
    }),
  },
  { title: "CheckedDomain" },
);

/** Returns a domain with the records of the keys, as the API shows it. */
export function showDomain(domain: Domain, keys: readonly PublicDkimKey[], deps: Checking) {
  const { serviceDomain, secondaryNames, isCaptureDomain } = deps;
  const delegation = delegationOf(domain, serviceDomain, secondaryNames);
  return {
    id: domain.id,
    domain: domain.name,
    status: domain.status,
    records: sendingRecords(domain, keys, serviceDomain),
    recommended: recommendedRecords(domain, deps),
    verifiedBy: domain.status === "pending" ? null : isCaptureDomain(domain.name) ? "capture" : "dns",
    authHealth: authHealth(domain),
    receiving: domain.receiving,
    routeIds: [...domain.routeIds],
    ...(delegation === null
      ? {}
      : { delegation, dmarc: domain.dmarcAuto ? "auto" : "manual", wildcard: domain.wildcard }),
    verifiedAt: showTime(domain.verifiedAt),
    checkedAt: showTime(domain.checkedAt),
    createdAt: showTime(domain.createdAt),
  };
}

/** Returns a domain with what a check found, as the API shows it. */
export function showCheckedDomain(domain: Domain, diagnosed: Diagnosed, deps: Checking) {
  const { records, recommended, warnings, spf } = diagnosed;
  const { result, lookups, voidLookups, problem, fix } = spf;
  return {
    ...showDomain(domain, [], deps),
    records,
    recommended,
    spf: { result, lookups, voidLookups, problem, fix },
    warnings,
  };
}

/** Warns that the records need not be published while all mail is captured, and when they cannot resolve. */
export function needlessRecords({ capturesAnyFrom, serviceDomain }: Checking, { status }: Domain): Warning[] {
  if (!capturesAnyFrom || status !== "pending") return [];
  const local = /(?:^|\.)localhost$/.test(serviceDomain)
    ? ` They cannot resolve below ${serviceDomain}, so the domain stays pending until SERVICE_DOMAIN is yours.`
    : "";
  const message = `Capture mode needs none of the records, because it accepts mail from any address.${local}`;
  return [{ param: "domain", message }];
}
