import { invalid } from "../../core/errors.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import {
  callOperation,
  fieldsOf,
  type Operations,
  refuseFields,
  resendRoute,
  translated,
  translatedList,
} from "./translate.ts";

interface DnsRecord {
  type: string;
  name: string;
  value: string;
  priority?: number;
  purpose: string;
  verified: boolean;
}

interface Domain {
  id: string;
  domain: string;
  status: string;
  records: DnsRecord[];
  receiving: boolean;
  createdAt: string;
}

/** Resend has a field for the region. Postrider runs in one place, which its operator knows. */
const REGION = "us-east-1";

const RECORD_NAMES: Readonly<Record<string, string>> = {
  dkim: "DKIM",
  spf: "SPF",
  dmarc: "DMARC",
  inbound: "Receiving",
};

const UNSUPPORTED = {
  custom_return_path: "Bounces return to the service.",
  tracking_subdomain: "Tracking links use the service's own host.",
  open_tracking: "Set tracking for the project with PATCH /v1/senders/{id}, or for each send.",
  click_tracking: "Set tracking for the project with PATCH /v1/senders/{id}, or for each send.",
};

/** Returns the routes of `/resend/domains`. */
export function domainRoutes(operations: Operations): Route[] {
  return [
    translated<Domain>(operations, {
      ...{ method: "POST", path: "/domains", operation: "createDomain", summary: "Add a domain" },
      ask({ body }) {
        const fields = fieldsOf(body);
        refuseFields(fields, UNSUPPORTED);
        if (receivingOf(fields) === true)
          throw invalid("capabilities.receiving", "can be enabled after the domain is verified.");
        return { body: { domain: fields.name } };
      },
      answer: (domain, context) => showDomain(domain, context),
    }),
    translatedList<Domain>(operations, {
      ...{ path: "/domains", operation: "listDomains", summary: "List domains" },
      show: (domain, context) => withoutRecords(showDomain(domain, context)),
    }),
    translated<Domain>(operations, {
      ...{ method: "GET", path: "/domains/:id", operation: "getDomain", summary: "Get a domain" },
      answer: (domain, context) => ({ object: "domain", ...showDomain(domain, context) }),
    }),
    updateRoute(operations),
    translated(operations, {
      ...{ method: "DELETE", path: "/domains/:id", operation: "deleteDomain", summary: "Delete a domain" },
      answer: (_body, { params }) => ({ object: "domain", id: params.id, deleted: true }),
    }),
    translated<Domain>(operations, {
      ...{ method: "POST", path: "/domains/:id/verify", operation: "verifyDomain", summary: "Verify" },
      answer: ({ id }) => ({ object: "domain", id }),
    }),
  ];
}

function updateRoute(operations: Operations): Route {
  const route = { method: "PATCH", path: "/domains/:id", operation: "setDomainReceiving" } as const;
  return resendRoute(operations, { ...route, summary: "Update a domain" }, async (context) => {
    const fields = fieldsOf(context.body);
    refuseFields(fields, UNSUPPORTED);
    const enabled = receivingOf(fields);
    const { params } = context;
    if (enabled === null) await callOperation(operations, "getDomain", context, { params });
    else await callOperation(operations, route.operation, context, { params, body: { enabled } });
    return { status: 200, body: { object: "domain", id: params.id } };
  });
}

/** Returns whether the body enables receiving; null if it says nothing. Throws 422 if it disables sending. */
function receivingOf(fields: Record<string, unknown>): boolean | null {
  const { sending, receiving } = fieldsOf(fields.capabilities, "capabilities");
  if (sending === "disabled") throw invalid("capabilities.sending", "cannot be disabled.");
  if (receiving === undefined) return null;
  if (receiving !== "enabled" && receiving !== "disabled")
    throw invalid("capabilities.receiving", 'must be "enabled" or "disabled".');
  return receiving === "enabled";
}

/** Returns a domain as Resend shows it. */
function showDomain(domain: Domain, { project }: CheckedRequest): Record<string, unknown> {
  return {
    id: domain.id,
    name: domain.domain,
    status: domain.status,
    created_at: domain.createdAt,
    region: REGION,
    capabilities: { sending: "enabled", receiving: domain.receiving ? "enabled" : "disabled" },
    open_tracking: project?.trackOpens,
    click_tracking: project?.trackClicks,
    records: domain.records.map(showRecord),
  };
}

function withoutRecords({ records: _records, ...shown }: Record<string, unknown>): Record<string, unknown> {
  return shown;
}

function showRecord({ type, name, value, priority, purpose, verified }: DnsRecord): Record<string, unknown> {
  return {
    ...{ record: RECORD_NAMES[purpose] ?? purpose, name, value, type, ttl: "Auto" },
    status: verified ? "verified" : "pending",
    ...(priority === undefined ? {} : { priority }),
  };
}
