import { Type } from "@sinclair/typebox";
import {
  APPROVAL_PATH,
  decideByLink,
  type Decision,
  type LinkDeps,
  type MessageToApprove,
  messageToApprove,
  openApprovalLink,
} from "../../../flows/notices/approval-link.ts";
import type { Answer } from "../../routing/answer.ts";
import { mailedLink } from "../../routing/mailed-link.ts";
import { openRoute, type Route } from "../../routing/route.ts";
import { OneOf } from "../../routing/schemas.ts";
import { linkPage } from "../../views/link-page.ts";

const WORDS: Readonly<Record<Decision, { title: string; text: string }>> = {
  approved: { title: "Approved", text: "The message leaves, at its time if it has one." },
  rejected: { title: "Rejected", text: "The message does not leave." },
  decided: { title: "Decided already", text: "This message no longer waits for an approval." },
};

/** Returns the routes of the links by which a message is approved. */
export function approvalLinkRoutes(deps: LinkDeps): Route[] {
  const { common, opened } = mailedLink(APPROVAL_PATH, (token) => openApprovalLink(deps, token));
  const show = openRoute({
    ...common,
    method: "GET",
    operationId: "showApproval",
    summary: "Show the message of an approval link, without a decision",
    description:
      "The page has the text and the recipients, and two buttons. Opening it changes nothing, because link checkers open every link.",
    async handle({ params }) {
      const message = await messageToApprove(deps, await opened(params.token));
      if (message === null || !message.waits) return answerOf("decided");
      return linkPage("A message waits for an approval", contentOf(message));
    },
  });
  const decide = openRoute({
    ...common,
    method: "POST",
    operationId: "decideByLink",
    summary: "Approve or reject the message of a link",
    description: "The audit trail names the person who got the link. A second decision changes nothing.",
    query: Type.Object({ decision: OneOf(["approve", "reject"]) }),
    async handle({ params, query, ip, requestId }) {
      const link = await opened(params.token);
      return answerOf(await decideByLink(deps, link, query.decision === "approve", { ip, requestId }));
    },
  });
  return [show, decide];
}

function answerOf(decision: Decision): Answer {
  const { title, text } = WORDS[decision];
  return linkPage(title, `<p>${text}</p>`);
}

/** Returns the message as text alone: nothing in it is loaded, and no markup of it counts. */
function contentOf(message: MessageToApprove): string {
  const { subject, from, recipients, more, files, text, cut } = message;
  const to = recipients.map((one) => `<li>${Bun.escapeHTML(one)}</li>`).join("");
  const rest = more > 0 ? `<p>And ${more} more.</p>` : "";
  const attached = files.length === 0 ? "" : `<p>Files: ${Bun.escapeHTML(files.join(", "))}</p>`;
  const form = (decision: string, button: string) =>
    `<form method="post" action="?decision=${decision}">${button}</form>`;
  return `<p>From ${Bun.escapeHTML(from)} to</p><ul>${to}</ul>${rest}<h2>${Bun.escapeHTML(subject)}</h2>${attached}<pre>${Bun.escapeHTML(text)}</pre>${
    cut ? "<p>The text goes on. Read all of it in the dashboard.</p>" : ""
  }${form("approve", "<button>Approve</button>")}${form("reject", `<button class="plain">Reject</button>`)}`;
}
