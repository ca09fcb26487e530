import { Type } from "@sinclair/typebox";
import { DKIM_CHOICES } from "../../core/domains/dkim-keys.ts";
import { AppError, notFound, existing } from "../../core/errors.ts";
import { diagnose } from "../../flows/domains/diagnose.ts";
import { switchDelegation } from "../../flows/domains/delegation.ts";
import { rememberedLookups } from "../../flows/domains/remembered-lookups.ts";
import { registerDomain } from "../../flows/domains/register.ts";
import { switchWildcard } from "../../flows/domains/wildcard.ts";
import { switchDmarc } from "../../flows/reports/policy.ts";
import { domainWarnings, type WarningDeps } from "../../flows/health/domains/warnings.ts";
import { rotateDkim } from "../../flows/domains/rotate.ts";
import { verifyDomain } from "../../flows/domains/verify.ts";
import { dkimKeysOf, listDkimKeys } from "../../store/domains/dkim-keys.ts";
import { deleteDomain, type Domain, listDomains, setDomainRoutes } from "../../store/domains/domains.ts";
import { created, noContent, ok } from "../routing/answer.ts";
import { type Principal, projectRoute, type Route } from "../routing/route.ts";
import { OneOf, PAGE_QUERY, PageOf } from "../routing/schemas.ts";
import {
  CheckedDomainView,
  DmarcMode,
  DomainView,
  Wildcard,
  needlessRecords,
  NO_ROUTE_IDS,
  showCheckedDomain,
  showDomain,
} from "../views/domain.ts";
import type { Checking } from "../../flows/domains/checking.ts";
import { domainReceivingRoutes, requireDomain } from "./domain-receiving.ts";
import { GivenRouteIds, requireRoutes } from "../views/route-ids.ts";

const DkimKeys = Type.Optional(
  OneOf(
    DKIM_CHOICES,
    "Algorithms of the DKIM keys. With `both`, each message has two signatures. Many receivers do not verify Ed25519 yet.",
  ),
);
const CreateDomain = Type.Object({
  domain: Type.String({
    minLength: 1,
    maxLength: 253,
    description: "The full domain name. We recommend a subdomain that is used for sending only.",
    examples: ["mail.example.com"],
  }),
  delegated: Type.Optional(
    Type.Boolean({
      description:
        "The service's name server holds the domain's zone. You publish the NS record in `delegation`, and no other. The zone is served once that record is seen.",
    }),
  ),
  dkimKeys: DkimKeys,
  dmarc: Type.Optional(DmarcMode),
  wildcard: Type.Optional(Wildcard),
});
const ChangeDomain = Type.Object({
  delegated: Type.Optional(
    Type.Boolean({ description: "Whether the service's name server holds the domain's zone." }),
  ),
  routeIds: GivenRouteIds(`${NO_ROUTE_IDS}. Requires an account-wide key`),
  dmarc: Type.Optional(DmarcMode),
  wildcard: Type.Optional(Wildcard),
});
const RotateDkim = Type.Object({ dkimKeys: DkimKeys });

async function showStored(deps: Checking, domain: Domain) {
  return showDomain(domain, await listDkimKeys(deps.db, domain.senderId, domain.id), deps);
}

/** Sets the routes of a domain. Routes are the account's, so a project's key may not choose among them. */
async function changeRoutes(
  { db }: Checking,
  { accountId, senderId: ofProject }: Principal,
  senderId: string,
  id: string,
  routeIds: readonly string[],
): Promise<void> {
  if (ofProject !== null)
    throw new AppError("permission_error", "Changing the routes of a domain needs an account-wide key.", {
      param: "routeIds",
    });
  await requireRoutes(db, accountId, routeIds);
  if (!(await setDomainRoutes(db, senderId, id, [...new Set(routeIds)]))) throw notFound("domain");
}

/** Returns the routes of `/v1/domains`. */
export function domainRoutes(deps: WarningDeps): Route[] {
  return [...collectionRoutes(deps), ...itemRoutes(deps), ...domainReceivingRoutes(deps)];
}

function collectionRoutes(deps: Checking): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "POST",
      path: "/v1/domains",
      operationId: "createDomain",
      costly: "keys",
      stores: { adds: ["domains"] },
      summary: "Add a sending domain",
      description:
        "The answer has the `records` to publish in the DNS. The domain sends once they are verified.",
      scope: "domains:write",
      body: CreateDomain,
      answers: { 201: DomainView },
      async handle({ body, project, senderId, now, record }) {
        let answer = created(undefined);
        const { domain: name, delegated = false, wildcard = false, dkimKeys, dmarc } = body;
        const wanted = { accountId: project.accountId, senderId, name, now, delegated, wildcard, dkimKeys };
        await registerDomain(deps, {
          ...wanted,
          dmarcAuto: dmarc === "auto",
          also(domain, keys) {
            answer = { ...created(showDomain(domain, keys, deps)), warnings: needlessRecords(deps, domain) };
            return record(answer);
          },
        });
        return answer;
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/domains",
      operationId: "listDomains",
      summary: "List domains, newest first",
      description: "With the results of the last check, which may be some hours old.",
      scope: "domains:read",
      query: Type.Object(PAGE_QUERY),
      answers: { 200: PageOf(DomainView) },
      async handle({ senderId, page }) {
        const { after, take, answer } = page();
        const domains = await listDomains(db, senderId, after, take);
        const ids = domains.map(({ id }) => id);
        const keys = await dkimKeysOf(db, senderId, ids);
        return ok(
          answer(
            domains,
            (domain) => showDomain(domain, keys.get(domain.id) ?? [], deps),
            ({ id }) => id,
          ),
        );
      },
    }),
  ];
}

function itemRoutes(deps: WarningDeps): Route[] {
  const { db } = deps;
  return [
    projectRoute({
      method: "GET",
      path: "/v1/domains/:id",
      operationId: "getDomain",
      summary: "Get a domain with the result of its last check",
      description: "Checks nothing itself. To check now, use `POST /v1/domains/{id}/verify`.",
      scope: "domains:read",
      answers: { 200: DomainView },
      async handle({ senderId, params }) {
        return ok(await showStored(deps, await requireDomain(deps, senderId, params.id)));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/domains/:id",
      operationId: "updateDomain",
      costly: "lookups",
      summary: "Change a domain's routes, who holds its zone, who moves its DMARC policy, or its wildcard",
      description:
        "`routeIds` come before the project's, for messages that are accepted from now on. With `delegated: true` the zone of a verified domain is served at once, and the records at your DNS host count until the NS record is seen. With `false` those records must be found first, else the answer is 409 and names what is missing.",
      scope: "domains:write",
      examples: { body: { delegated: false } },
      body: ChangeDomain,
      answers: { 200: DomainView },
      errors: ["conflict"],
      async handle({ principal, senderId, params, body: { delegated, routeIds, dmarc, wildcard } }) {
        if (routeIds !== undefined) await changeRoutes(deps, principal, senderId, params.id, routeIds);
        if (delegated !== undefined && !(await switchDelegation(deps, senderId, params.id, delegated)))
          throw notFound("domain");
        if (delegated === true) await verifyDomain(deps, senderId, params.id);
        if (wildcard !== undefined) await switchWildcard(deps, senderId, params.id, wildcard);
        if (dmarc !== undefined) await switchDmarc(deps, senderId, params.id, dmarc === "auto");
        return ok(await showStored(deps, await requireDomain(deps, senderId, params.id)));
      },
    }),
    projectRoute({
      method: "DELETE",
      path: "/v1/domains/:id",
      operationId: "deleteDomain",
      summary: "Delete a domain without inboxes",
      description: "A domain with inboxes cannot be deleted: 409.",
      scope: "domains:write",
      answers: { 204: null },
      errors: ["conflict"],
      async handle({ senderId, params }) {
        if (await deleteDomain(db, senderId, params.id)) return noContent();
        await requireDomain(deps, senderId, params.id);
        throw new AppError("conflict", "This domain has inboxes. Delete them first.", {
          code: "invalid_state",
        });
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/domains/:id/verify",
      operationId: "verifyDomain",
      costly: "lookups",
      summary: "Check a domain's DNS records now",
      description:
        "Looks the records up at once. Each record shows what the DNS has in its place, and the value that solves a problem. Without this call, pending domains are checked every five minutes, and later every hour.",
      scope: "domains:write",
      answers: { 200: CheckedDomainView },
      async handle({ senderId, params }) {
        const remembering = { ...deps, lookups: rememberedLookups(deps.lookups) };
        const domain = existing("domain", await verifyDomain(remembering, senderId, params.id));
        const keys = await listDkimKeys(db, senderId, domain.id);
        const diagnosed = await diagnose(remembering, domain, keys);
        const warnings = await domainWarnings(remembering, domain, { keys, spf: diagnosed.spf });
        return ok(
          showCheckedDomain(domain, { ...diagnosed, warnings: [...diagnosed.warnings, ...warnings] }, deps),
        );
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/domains/:id/rotate-dkim",
      operationId: "rotateDomainDkim",
      costly: "keys",
      summary: "Rotate a domain's DKIM keys",
      description:
        "Signing switches to the new keys when their records resolve. The old records stay needed for 7 days. With `dkimKeys`, the domain changes to other algorithms.",
      scope: "domains:write",
      body: RotateDkim,
      bodyOptional: true,
      answers: { 200: DomainView },
      async handle({ senderId, params, body, now, record }) {
        let answer = ok(undefined);
        const wanted = { senderId, id: params.id, now, dkimKeys: body.dkimKeys };
        await rotateDkim(deps, {
          ...wanted,
          also(domain, keys) {
            answer = ok(showDomain(domain, keys, deps));
            return record(answer);
          },
        });
        return answer;
      },
    }),
  ];
}
