import { Type } from "@sinclair/typebox";
import { mailboxText } from "../../core/addresses.ts";
import { notFound } from "../../core/errors.ts";
import { readRecord } from "../../flows/read/record.ts";
import { type Attachment, listAttachments } from "../../store/messages/attachments.ts";
import { getInbox } from "../../store/threads/inboxes.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import { OneOf, showTime } from "../routing/schemas.ts";
import type { CheckedRequest, Route } from "../routing/route.ts";
import { type FileDeps, rawLink } from "./attachments.ts";
import { mailboxTexts } from "./shapes.ts";
import { ID_PAGE, type Operations, resendRoute, translatedList } from "./translate.ts";

/** Returns the routes of received messages. */
export function receivingRoutes(operations: Operations, deps: FileDeps): Route[] {
  return [
    translatedList<{ id: string; status: string }>(operations, {
      ...{ path: "/emails/receiving", operation: "listEmails", summary: "List received messages" },
      query: Type.Object(ID_PAGE),
      ask: () => ({ query: { direction: "inbound" } }),
      // A message that DMARC refused was not received.
      keep: ({ status }) => status !== "inbound_rejected",
      show: ({ id }, context) => showListed(deps, context, id),
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
          ...{ object: "email", ...showFacts(message, attachments, receivedFor), html, text, headers },
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

async function showListed({ db }: FileDeps, { senderId }: CheckedRequest, id: string): Promise<unknown> {
  const owner = senderId ?? "";
  const message = await getMessage(db, owner, id);
  // Retention may have removed it since the list was read.
  if (message === null) throw notFound("email");
  const inbox = message.inboxId === null ? null : await getInbox(db, owner, message.inboxId);
  const attachments = await listAttachments(db, owner, id);
  return showFacts(message, attachments, inbox === null ? [] : [inbox.address]);
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
    cc: mailboxTexts(message.cc),
    bcc: mailboxTexts(message.bcc),
    reply_to: mailboxTexts(message.replyTo),
    received_for: receivedFor,
    subject: message.subject,
    created_at: showTime(message.createdAt),
    attachments: attachments.map(showAttachment),
  };
}

/** Returns an attachment as Resend's records and events show it. */
function showAttachment({ id, filename, size, contentType, contentId, disposition }: Attachment) {
  return {
    ...{ id, filename, size, content_type: contentType },
    ...{ content_id: contentId, content_disposition: disposition },
  };
}
