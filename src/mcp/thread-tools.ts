import { Type } from "@sinclair/typebox";
import { INVITATION_ANSWERS } from "../core/messages/invitation.ts";
import { addressesInput, choiceInput, flagInput, MAIL, PAGE, textInput, without } from "./inputs.ts";
import { idIn, type Tool, withQuery } from "./tool.ts";

/** Marks a reply as written by a program (RFC 3834 §5), so that two programs do not answer each other forever. */
const AUTOMATIC = { "Auto-Submitted": "auto-replied" };

/** The tools of conversations and drafts. */
export const THREAD_TOOLS: readonly Tool[] = [
  {
    name: "list_threads",
    title: "List conversations",
    description: "Returns conversations, most recently active first.",
    scopes: ["threads:read"],
    input: {
      inboxId: textInput("Only conversations of this inbox."),
      text: textInput("Words of a message's subject, bodies or file names, in any order and case."),
      q: textInput("Part of the subject, a participant or the preview."),
      unread: flagInput("Only unread ones."),
      archived: flagInput("Only archived ones."),
      folder: choiceInput("inbox", "snoozed", "spam", "trash"),
      label: textInput("Only those with this label."),
      assignee: textInput("Only those of this member, `mem_…`; `none`: those that nobody has."),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) =>
      call({
        method: "GET",
        path: withQuery("/v1/threads", args),
      }),
  },
  {
    name: "get_mailbox",
    title: "List labels and members",
    description:
      "Returns the labels in use with their numbers of conversations, and the members whom conversations can be assigned to.",
    scopes: ["threads:read"],
    input: {},
    readOnly: true,
    strangersWords: null,
    run: (call) => call({ method: "GET", path: "/v1/mailbox" }),
  },
  {
    name: "get_thread",
    title: "Read a conversation",
    description: "Returns a conversation with its messages, oldest first.",
    scopes: ["threads:read"],
    input: { id: textInput("Id of the conversation, `thr_…`.") },
    required: ["id"],
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) => call({ method: "GET", path: `/v1/threads/${idIn(args, "id", "thr")}` }),
  },
  {
    name: "reply",
    title: "Reply in a conversation",
    description:
      "Answers the newest message of a conversation, or the one named, from its inbox. `invitation` answers the event that it invites to. A conversation takes ten such replies an hour.",
    scopes: ["threads:reply"],
    input: {
      threadId: textInput("Id of the conversation, `thr_…`."),
      text: textInput("The plain text."),
      html: textInput("The html."),
      messageId: textInput("The message to answer, `msg_…`."),
      replyAll: flagInput("Also answers its other recipients."),
      invitation: choiceInput(...INVITATION_ANSWERS),
      cc: addressesInput("Further copies."),
    },
    required: ["threadId"],
    readOnly: false,
    strangersWords: null,
    run: (call, args) =>
      call({
        method: "POST",
        path: `/v1/threads/${idIn(args, "threadId", "thr")}/reply`,
        body: { ...without(args, ["threadId"]), headers: AUTOMATIC },
      }),
  },
  {
    name: "update_thread",
    title: "Label, assign, snooze or move a conversation",
    description:
      "Changes the given fields of a conversation. `labels` replace those that it has. Spam and trash are deleted after 30 days.",
    scopes: ["threads:reply"],
    input: {
      threadId: textInput("Id of the conversation, `thr_…`."),
      read: flagInput("Marks it as read, or as unread again."),
      archived: flagInput("Archives it, or brings it back."),
      labels: Type.Array(Type.String(), { description: "All labels that it has then." }),
      assigneeId: textInput("The member who takes care of it, `mem_…`."),
      folder: choiceInput("inbox", "spam", "trash"),
      snoozedUntil: textInput("ISO 8601 time at which it comes back; earlier if an answer arrives."),
    },
    required: ["threadId"],
    readOnly: false,
    strangersWords: MAIL,
    run: (call, args) =>
      call({
        method: "PATCH",
        path: `/v1/threads/${idIn(args, "threadId", "thr")}`,
        body: without(args, ["threadId"]),
      }),
  },
  {
    name: "add_note",
    title: "Add an internal note to a conversation",
    description: "The team sees it in the conversation. It never leaves by mail.",
    scopes: ["threads:reply"],
    input: {
      threadId: textInput("Id of the conversation, `thr_…`."),
      text: textInput("The note, at most 5000 characters."),
    },
    required: ["threadId", "text"],
    readOnly: false,
    strangersWords: null,
    run: (call, args) =>
      call({
        method: "POST",
        path: `/v1/threads/${idIn(args, "threadId", "thr")}/notes`,
        body: without(args, ["threadId"]),
      }),
  },
  {
    name: "forward_email",
    title: "Forward an email",
    description: "Sends a message on as a new one, from its inbox and in its conversation, below your text.",
    scopes: ["emails:send", "emails:read"],
    input: {
      id: textInput("Id of the message, `msg_…`."),
      to: addressesInput("The recipients."),
      text: textInput("The plain text that comes first."),
      as: choiceInput("inline", "attachment"),
    },
    required: ["id", "to"],
    readOnly: false,
    strangersWords: null,
    run: (call, args) =>
      call({
        method: "POST",
        path: `/v1/emails/${idIn(args, "id", "msg")}/forward`,
        body: without(args, ["id"]),
      }),
  },
  {
    name: "create_draft",
    title: "Propose a message",
    description:
      "Saves a message, which a person reads and sends. With `threadId` it is a reply, which needs only a text; else it needs `from`, `to` and `subject`.",
    scopes: ["drafts:write"],
    input: {
      threadId: textInput("The conversation that it answers, `thr_…`."),
      from: textInput("The sender, without `threadId`."),
      to: addressesInput("The recipients."),
      cc: addressesInput("Further copies."),
      subject: textInput("The subject."),
      text: textInput("The plain text."),
      html: textInput("The html."),
      replyAll: flagInput("Also answers the other recipients."),
    },
    readOnly: false,
    strangersWords: null,
    run: (call, args) => call({ method: "POST", path: "/v1/drafts", body: { ...args } }),
  },
  {
    name: "list_drafts",
    title: "List drafts",
    description: "Returns messages that wait for a person to send them, newest first.",
    scopes: ["drafts:write"],
    input: {
      threadId: textInput("Only drafts of this conversation."),
      inboxId: textInput("Only replies from this inbox."),
      authorType: choiceInput("member", "key"),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/drafts", args) }),
  },
  {
    name: "get_draft",
    title: "Read a draft",
    description: "Returns a draft with everything that is written.",
    scopes: ["drafts:write"],
    input: { id: textInput("Id of the draft, `drf_…`.") },
    required: ["id"],
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) => call({ method: "GET", path: `/v1/drafts/${idIn(args, "id", "drf")}` }),
  },
];
