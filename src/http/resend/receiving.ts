import { Type } from "@sinclair/typebox";
import { mailboxText } from "../../core/addresses.ts";
import { notFound } from "../../core/errors.ts";
import { readRecord } from "../../flows/read/record.ts";
import { type Attachment, attachmentsOfAll } from "../../store/messages/attachments.ts";
import { receivedFor } from "../../store/lists/received-for.ts";
import { listSentOrReceived } from "../../store/lists/sent-and-received.ts";
import type { Message } from "../../store/messages/messages.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import type { Route } from "../routing/route.ts";
import { rawLink } from "./attachments.ts";
import { listRoute, type Operations, resendRoute } from "./form/translate.ts";
import type { Parts } from "../routing/parts.ts";

/** Returns the routes of received messages. */
export function receivingRoutes(operations: Operations, deps: Parts): Route[] {
  return [
    listRoute(operations, {
      path: "/emails/receiving",
      operation: "listEmails",
      summary: "List received messages",
      read: ({ senderId }, place, take) => listSentOrReceived(deps.db, senderId, "received", place, take),
      show: (messages, { senderId }) => showListed(deps, senderId ?? "", messages),
    }),
    resendRoute(operations, GET_ROUTE, async ({ senderId, params, expectAnswer, now }) => {
      const record = await readRecord(deps, senderId ?? "", params.id ?? "", { expect: expectAnswer });
      if (record === null || record.message.direction !== "inbound") throw notFound("email");
      const { message, content, attachments } = record;
      const { html, text, headers, envelope } = content;
      const receivedFor = (envelope?.rcptTo ?? []) as string[];
      return {
        status: 200,
        body: {
          object: "email",
          ...showFacts(message, attachments, receivedFor),
          html,
          text,
          headers,
          raw: rawLink(deps, message.senderId, message.id, now),
        },
      };
    }),
  ];
}

const GET_ROUTE = {
  method: "GET",
  path: "/emails/receiving/:id",
  operation: "getEmail",
  summary: "Get a received message",
  query: Type.Object({
    html_format: Type.Optional(
      OneOf(
        ["cid", "data_uri"],
        "The html keeps its `cid:` links in both cases. Their attachments have links.",
      ),
    ),
  }),
} as const;

/** Returns messages as a list shows them. Their attachments and inboxes are read for all together. */
async function showListed({ db }: Parts, owner: string, messages: readonly Message[]): Promise<unknown[]> {
  const ids = messages.map(({ id }) => id);
  const attachments = await attachmentsOfAll(db, owner, ids);
  const addresses = await receivedFor(db, owner, messages);
  return messages.map((message) =>
    showFacts(message, attachments.get(message.id) ?? [], addresses.get(message.id) ?? []),
  );
}

function showFacts(
  message: Message,
  attachments: readonly Attachment[],
  receivedFor: readonly string[],
): Record<string, unknown> {
  return {
    id: message.id,
    message_id: message.rfcMessageId ?? "",
    from: mailboxText(message.from),
    to: message.to.map(mailboxText),
    cc: message.cc.map(mailboxText),
    bcc: message.bcc.map(mailboxText),
    reply_to: message.replyTo.map(mailboxText),
    received_for: receivedFor,
    subject: message.subject,
    created_at: showTime(message.createdAt),
    attachments: attachments.map(showAttachment),
  };
}

/** Returns an attachment as Resend's records and events show it. */
function showAttachment({ id, filename, size, contentType, contentId, disposition }: Attachment) {
  return {
    id,
    filename,
    size,
    content_type: contentType,
    content_id: contentId,
    content_disposition: disposition,
  };
}
