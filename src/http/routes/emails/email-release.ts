import { type Static, Type } from "@sinclair/typebox";
import { entriesOf } from "../../../core/messages/address-input.ts";
import { SendItem } from "../../../core/messages/send-item.ts";
import { commitSend, sending } from "../../../flows/accept/accept.ts";
import { prepareRelease, type Release } from "../../../flows/accept/release.ts";
import { logAccepted } from "../../pipeline/request-log.ts";
import { exampleId } from "../../openapi/examples.ts";
import { accepted } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { requireRoute } from "../../views/route-ids.ts";
import { AcceptedMessage } from "../../views/accepted.ts";
import { checkedSend } from "../../../core/messages/send-rules.ts";

const MAX_ROUTE_ID_CHARS = 64;

const ReleaseBody = Type.Object(
  {
    to: Type.Optional(SendItem.properties.to),
    routeId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_ROUTE_ID_CHARS,
        description:
          "The route to take. If absent: the first of `routeIds` of the From domain or the project, else the relay of SMTP_RELAY_URL.",
        examples: ["default"],
      }),
    ),
  },
  { title: "ReleaseEmail" },
);

/** Returns the route that sends a captured message for real. */
export function emailReleaseRoute(deps: Parts): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/emails/:id/release",
    operationId: "releaseEmail",
    stores: { limitedBy: "handler" },
    scope: "emails:send",
    summary: "Send a captured message for real",
    description:
      "Makes a new message of a captured one, which stays, and sends it by a route that leaves this machine. It goes to `to`, or to all recipients of the captured message. It counts in quotas. Through a route of kind `mx`, its From domain must be verified.",
    examples: {
      body: { to: "me@example.com" },
      answer: { id: exampleId("msg"), status: "queued" },
    },
    body: ReleaseBody,
    bodyOptional: true,
    answers: { 202: AcceptedMessage },
    errors: ["not_found", "conflict"],
    async handle({ body, now, params, project, principal, record, requestId }) {
      const release = await releaseOf(deps, project.accountId, body, now);
      return sending(async () => {
        const prepared = await prepareRelease(deps, project, principal, params.id, release);
        const answer = accepted(prepared.accepted);
        await commitSend(deps, project, prepared, record(answer));
        logAccepted(requestId, [prepared.accepted.id]);
        return answer;
      });
    },
  });
}

/** Returns what a body asks. Throws 422 for addresses that a send would refuse, and for a route of another account. */
async function releaseOf(
  { db, config, limits }: Parts,
  accountId: string,
  { to, routeId: given }: Static<typeof ReleaseBody>,
  now: number,
): Promise<Release> {
  const routeId = given ?? null;
  if (routeId !== null) await requireRoute(db, accountId, routeId, "routeId");
  const { delivery, smtpRelayUrl } = config;
  const captured = smtpRelayUrl === null ? null : ("relay" as const);
  const byDefault = delivery === "capture" ? captured : delivery;
  if (to === undefined) return { to: null, routeId, byDefault };
  const { item } = checkedSend({ ...WITHOUT_RECIPIENTS, to: entriesOf(to) }, limits, now);
  return { to: item.to, routeId, byDefault };
}

/** The rest of a send, so that its rules check the recipients alone. */
const WITHOUT_RECIPIENTS = { from: "a@example.com", subject: "x", text: "x" };
