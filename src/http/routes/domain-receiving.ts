import { Type } from "@sinclair/typebox";
import { AppError, existing } from "../../core/errors.ts";
import { receivingRecords } from "../../flows/records/records.ts";
import { ConstraintError } from "../../store/engine/client.ts";
import { type Domain, getDomain, setReceiving } from "../../store/domains/domains.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { type Answer, ok } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { RecordView } from "../views/domain.ts";
import type { Checking } from "../../flows/domains/checking.ts";

const ReceivingSchema = Type.Object(
  {
    enabled: Type.Boolean(),
    records: Type.Array(RecordView),
  },
  { title: "Receiving" },
);
const SetReceiving = Type.Object({ enabled: Type.Boolean() });

/** Returns the project's domain. Throws 404 if it has none with that id. */
export async function requireDomain({ db }: Checking, senderId: string, id: string): Promise<Domain> {
  return existing("domain", await getDomain(db, senderId, id));
}

function receivingState({ serviceDomain }: Checking, domain: Domain): Answer {
  return ok({ enabled: domain.receiving, records: receivingRecords(domain, serviceDomain) });
}

async function changeReceiving(deps: Checking, senderId: string, id: string, enabled: boolean, now: number) {
  const before = await requireDomain(deps, senderId, id);
  if (before.receiving === enabled) return receivingState(deps, before);
  try {
    if (!(await setReceiving(deps.db, senderId, id, enabled, now))) {
      await requireDomain(deps, senderId, id);
      throw new AppError(
        "conflict",
        "A domain must be verified before it can receive. Publish its records, then call POST /v1/domains/{id}/verify.",
        {
          code: "invalid_state",
        },
      );
    }
  } catch (error) {
    if (isBroken(error, "mx_in_the_way"))
      throw new AppError("conflict", "The domain's zone has an MX record of yours. Delete it first.");
    if (error instanceof ConstraintError)
      throw new AppError("conflict", "Another project receives mail for this domain.", { code: "duplicate" });
    throw error;
  }
  // Another request may have changed it since, so it is read again.
  return receivingState(deps, { ...before, receiving: enabled });
}

/** Returns the routes that turn receiving on and off. */
export function domainReceivingRoutes(deps: Checking): Route[] {
  return [
    projectRoute({
      method: "GET",
      path: "/v1/domains/:id/receiving",
      operationId: "getDomainReceiving",
      summary: "Get whether a domain receives mail",
      description: "With the MX record to publish, and whether it was found.",
      scope: "domains:read",
      answers: { 200: ReceivingSchema },
      async handle({ senderId, params }) {
        return receivingState(deps, await requireDomain(deps, senderId, params.id));
      },
    }),
    projectRoute({
      method: "PATCH",
      path: "/v1/domains/:id/receiving",
      operationId: "setDomainReceiving",
      summary: "Turn receiving for a verified domain on or off",
      description:
        "The domain must be verified. If receiving is turned off, new mail is refused; inboxes and threads stay.",
      scope: "domains:write",
      body: SetReceiving,
      answers: { 200: ReceivingSchema },
      errors: ["conflict"],
      handle: ({ senderId, params, body, now }) =>
        changeReceiving(deps, senderId, params.id, body.enabled, now),
    }),
  ];
}
