import { type Static, Type } from "@sinclair/typebox";
import { invalid } from "../../core/errors.ts";
import type { Db } from "../../store/engine/client.ts";
import { listDomains } from "../../store/domains/domains.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import { Given, ShortText } from "./form/given.ts";
import {
  callOperation,
  listRoute,
  type Operations,
  refuseFields,
  resendRoute,
  translated,
} from "./form/translate.ts";

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
  recommended: DnsRecord[];
  receiving: boolean;
  createdAt: string;
}

/** Resend has a field for the region. Postrider runs in one place, which its operator knows. */
const REGION = "us-east-1";

const RECORD_NAMES: Readonly<Record<string, string>> = {
  dkim: "DKIM",
  spf: "SPF",
  // The packages know no kind for DMARC, and Rust's fails at an unknown one. It is a TXT record as SPF is.
  dmarc: "SPF",
  inbound: "Receiving",
  return_path: "SPF",
  links: "Tracking",
};

/** The only value of `custom_return_path`: the label of every domain's own return path. */
const RETURN_PATH_LABEL = "bounce";

const UNSUPPORTED = {
  tracking_subdomain:
    "Links lead to `links.` of the domain if its records of the kind Tracking are published, else to the service's own host.",
  open_tracking: "Set tracking for the project with PATCH /v1/senders/{id}, or for each send.",
  click_tracking: "Set tracking for the project with PATCH /v1/senders/{id}, or for each send.",
};

const TLS_ADVICE =
  'cannot be "enforced", so mail might leave without TLS. Recipients demand it with MTA-STS or DANE, which Postrider follows. Leave the field out, or send "opportunistic".';

const MAX_DOMAIN_CHARS = 253;
const Switch = OneOf(["enabled", "disabled"]);
const SETTINGS = {
  capabilities: Given(Type.Object({ sending: Given(Switch), receiving: Given(Switch) })),
  tls: Given(OneOf(["opportunistic", "enforced"])),
  custom_return_path: Given(ShortText),
};
const Settings = Type.Object(SETTINGS);

/** Returns the routes of `/resend/domains`. */
export function domainRoutes(operations: Operations, db: Db): Route[] {
  return [
    translated(operations, {
      method: "POST",
      path: "/domains",
      operation: "createDomain",
      summary: "Add a domain",
      body: Type.Object({ ...SETTINGS, name: Given(Type.String({ maxLength: MAX_DOMAIN_CHARS })) }),
      ask({ body }) {
        refuseSettings(body);
        if (receivingOf(body) === true)
          throw invalid("capabilities.receiving", "can be enabled after the domain is verified.");
        return { body: body.name == null ? {} : { domain: body.name } };
      },
      answer: (domain: Domain, context) => ({
        ...showDomain(domain, context),
        records: showRecords(domain),
      }),
    }),
    listRoute(operations, {
      path: "/domains",
      operation: "listDomains",
      summary: "List domains",
      read: ({ senderId }, place, take) => listDomains(db, senderId, place, take),
      show: (domains, context) =>
        domains.map(({ id, name, status, receiving, createdAt }) =>
          showDomain({ id, domain: name, status, receiving, createdAt: showTime(createdAt) }, context),
        ),
    }),
    translated(operations, {
      method: "GET",
      path: "/domains/:id",
      operation: "getDomain",
      summary: "Get a domain",
      answer: (domain: Domain, context) => ({
        object: "domain",
        ...showDomain(domain, context),
        records: showRecords(domain),
      }),
    }),
    updateRoute(operations),
    translated(operations, {
      method: "DELETE",
      path: "/domains/:id",
      operation: "deleteDomain",
      summary: "Delete a domain",
      answer: (_body, { params }) => ({ object: "domain", id: params.id, deleted: true }),
    }),
    translated(operations, {
      method: "POST",
      path: "/domains/:id/verify",
      operation: "verifyDomain",
      summary: "Verify",
      answer: ({ id }: Domain) => ({ object: "domain", id }),
    }),
  ];
}

function updateRoute(operations: Operations): Route {
  const route = { method: "PATCH", path: "/domains/:id", operation: "setDomainReceiving" } as const;
  const body = Settings;
  return resendRoute(operations, { ...route, body, summary: "Update a domain" }, async (context) => {
    refuseSettings(context.body);
    const enabled = receivingOf(context.body);
    const { params } = context;
    if (enabled === null) await callOperation(operations, "getDomain", context, { params });
    else await callOperation(operations, route.operation, context, { params, body: { enabled } });
    return { status: 200, body: { object: "domain", id: params.id } };
  });
}

/** Returns whether the body enables receiving; null if it says nothing. Throws 422 if it disables sending. */
function receivingOf({ capabilities }: Static<typeof Settings>): boolean | null {
  const { sending, receiving } = capabilities ?? {};
  if (sending === "disabled") throw invalid("capabilities.sending", "cannot be disabled.");
  return receiving == null ? null : receiving === "enabled";
}

function refuseSettings(fields: Static<typeof Settings>): void {
  refuseFields(fields, UNSUPPORTED);
  if (fields.custom_return_path != null && fields.custom_return_path !== RETURN_PATH_LABEL)
    throw invalid(
      "custom_return_path",
      `can only be "${RETURN_PATH_LABEL}". Publish the record at that name.`,
    );
  if (fields.tls === "enforced") throw invalid("tls", TLS_ADVICE);
}

function showDomain(
  domain: Omit<Domain, "records" | "recommended">,
  { project }: CheckedRequest,
): Record<string, unknown> {
  return {
    id: domain.id,
    name: domain.domain,
    status: domain.status,
    created_at: domain.createdAt,
    region: REGION,
    capabilities: { sending: "enabled", receiving: domain.receiving ? "enabled" : "disabled" },
    open_tracking: project?.trackOpens,
    click_tracking: project?.trackClicks,
  };
}

/** A recommended record that is not there is no reason to wait, so it is not `pending`. */
function showRecords({ records, recommended }: Domain): Record<string, unknown>[] {
  return [
    ...records.map((record) => showRecord(record, "pending")),
    ...recommended.map((record) => showRecord(record, "not_started")),
  ];
}

function showRecord(
  { type, name, value, priority, purpose, verified }: DnsRecord,
  otherwise: string,
): Record<string, unknown> {
  return {
    record: RECORD_NAMES[purpose] ?? purpose,
    name,
    value,
    type,
    ttl: "Auto",
    status: verified ? "verified" : otherwise,
    ...(priority === undefined ? {} : { priority }),
  };
}
