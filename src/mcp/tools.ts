import { Type } from "@sinclair/typebox";
import { IDEMPOTENCY_KEY } from "../core/idempotency-key.ts";
import { TRUSTS } from "../core/messages/sender.ts";
import { AUDIENCE_TOOLS } from "./audience-tools.ts";
import { choiceInput, flagInput, MAIL, MESSAGE_INPUT, PAGE, textInput } from "./inputs.ts";
import { THREAD_TOOLS } from "./thread-tools.ts";
import { type Args, type CallApi, idIn, type Tool, type ToolAnswer, withQuery } from "./tool.ts";

/** Longest time that one call waits for a message, seconds. */
const MAX_WAIT_SECONDS = 60;

/** Strangers' words that answers may hold, besides mail. */
const REPLIES = "addresses and replies of other people's mail servers";
const RECORDS = "DNS records published by other people";

const TRUST_INPUT = Type.Union(
  TRUSTS.map((trust) => Type.Literal(trust)),
  { description: "How far the sender of a received message is trusted: `sender.trust` of the message." },
);

/** The tools, in the order in which an agent uses them. */
export const TOOLS: readonly Tool[] = [
  {
    name: "send_email",
    title: "Send an email",
    description:
      "Sends one message. The answer has its id and status; `accepted` means that it waits for its time or for an approval by a person.",
    scopes: ["emails:send"],
    input: {
      ...MESSAGE_INPUT,
      idempotencyKey: Type.String({
        pattern: IDEMPOTENCY_KEY.source,
        meaning: "of 1 to 256 printable ASCII characters",
        description: "The same key sends once, however often the call is repeated.",
      }),
    },
    required: ["from", "to"],
    readOnly: false,
    strangersWords: null,
    run: (call, args) => call({ method: "POST", path: "/v1/emails", body: { ...args } }),
  },
  {
    name: "get_email",
    title: "Read an email",
    description: "Returns a message with its bodies, recipients, events, and the links and codes in it.",
    scopes: ["emails:read"],
    input: { id: textInput("Id of the message, `msg_…`.") },
    required: ["id"],
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) => call({ method: "GET", path: `/v1/emails/${idIn(args, "id", "msg")}` }),
  },
  {
    name: "explain_delivery",
    title: "Explain a delivery",
    description: "Says in plain words what became of a message at each recipient, why, and what to do.",
    scopes: ["emails:read"],
    input: { id: textInput("Id of the message, `msg_…`.") },
    required: ["id"],
    readOnly: true,
    strangersWords: REPLIES,
    run: (call, args) => call({ method: "GET", path: `/v1/emails/${idIn(args, "id", "msg")}/explain` }),
  },
  {
    name: "list_inboxes",
    title: "List inboxes",
    description: "Returns the addresses at which the project receives mail.",
    scopes: ["inboxes:read"],
    input: { domainId: textInput("Only inboxes of this domain.") },
    readOnly: true,
    strangersWords: null,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/inboxes", args) }),
  },
  {
    name: "create_inbox",
    title: "Create an inbox",
    description: "Makes an address at a domain of the project that receives mail.",
    scopes: ["inboxes:write"],
    input: {
      address: textInput("The whole address."),
      localPart: textInput("The part before the @, together with `domainId`."),
      domainId: textInput("Id of the domain, `dom_…`."),
      displayName: textInput("Name that its messages show."),
    },
    readOnly: false,
    strangersWords: null,
    run: (call, args) => call({ method: "POST", path: "/v1/inboxes", body: { ...args } }),
  },
  {
    name: "list_rules",
    title: "List rules",
    description: "Returns the rules that act on mail as it arrives, in the order in which they apply.",
    scopes: ["inboxes:read"],
    input: PAGE,
    readOnly: true,
    strangersWords: null,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/rules", args) }),
  },
  {
    name: "try_rules",
    title: "Try the rules on a message",
    description: "Shows what the rules would do to a received message, and which condition of each fails.",
    scopes: ["emails:read"],
    input: { emailId: textInput("Id of a received message.") },
    required: ["emailId"],
    readOnly: true,
    strangersWords: null,
    run: (call, args) => call({ method: "POST", path: "/v1/rules/try", body: args }),
  },
  ...THREAD_TOOLS,
  {
    name: "wait_for_email",
    title: "Wait for an email",
    description:
      "Returns the first incoming message that matches, with its links and codes, as soon as it arrives. `found` is false if none came in time; then call again.",
    scopes: ["emails:read"],
    input: {
      to: textInput("An address that receives it."),
      from: textInput("The sender's address."),
      trust: TRUST_INPUT,
      q: textInput("Part of the subject or an address."),
      after: textInput(
        "ISO 8601 time; earlier messages do not count. If absent, an earlier message may be the answer.",
      ),
      timeoutSeconds: Type.Integer({
        minimum: 1,
        maximum: MAX_WAIT_SECONDS,
        description: "30 if absent.",
      }),
    },
    readOnly: true,
    strangersWords: MAIL,
    run: waitForEmail,
  },
  {
    name: "search_emails",
    title: "Search emails",
    description:
      "Returns messages, newest first, without their bodies. With `text`, `highlights` show where the words are.",
    scopes: ["emails:read"],
    input: {
      text: textInput("Words of the subject, the bodies or a file name, in any order and case."),
      q: textInput("Part of a recipient, the sender or the subject."),
      status: textInput("For example delivered, bounced, queued."),
      direction: choiceInput("inbound", "outbound"),
      trust: TRUST_INPUT,
      from: textInput("The sender's address."),
      to: textInput("A recipient's address."),
      tag: textInput("A tag as `name:value`."),
      after: textInput("ISO 8601 time or day."),
      before: textInput("ISO 8601 time or day."),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: MAIL,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/emails", args) }),
  },
  {
    name: "verify_domain",
    title: "Verify a domain",
    description:
      "Checks a domain's DNS records now. For each record it says what was found and how to fix it.",
    scopes: ["domains:write"],
    input: { id: textInput("Id of the domain, `dom_…`.") },
    required: ["id"],
    readOnly: false,
    strangersWords: RECORDS,
    run: (call, args) => call({ method: "POST", path: `/v1/domains/${idIn(args, "id", "dom")}/verify` }),
  },
  ...AUDIENCE_TOOLS,
  {
    name: "list_suppressions",
    title: "List suppressed addresses",
    description:
      "Returns addresses that get no mail because they bounced, complained or were suppressed by hand.",
    scopes: ["suppressions:read"],
    input: {
      email: textInput("Only this address."),
      reason: choiceInput("bounce", "complaint", "manual"),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: REPLIES,
    run: (call, args) =>
      call({
        method: "GET",
        path: withQuery("/v1/suppressions", args),
      }),
  },
  {
    name: "list_notices",
    title: "List notices",
    description:
      "Returns what fails or waits for someone, newest first: domains, webhooks, limits, suspensions, approvals. `fix` names the page of the dashboard for people.",
    scopes: ["metrics:read"],
    input: {
      ended: flagInput("False: only what is still so. True: only what is over."),
      seen: flagInput("False: only what someone still has to see. True: only what was seen."),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: REPLIES,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/notices", args) }),
  },
];

async function waitForEmail(call: CallApi, args: Args): Promise<ToolAnswer> {
  const { timeoutSeconds = 30, ...filter } = args;
  const query = { ...filter, direction: "inbound", limit: 1, wait: timeoutSeconds };
  const page = await call({ method: "GET", path: withQuery("/v1/emails", query) });
  if (page.status !== 200) return page;
  const [first] = page.body.data as { id: string }[];
  if (first === undefined) return { status: 200, body: { found: false } };
  const { status, body } = await call({ method: "GET", path: `/v1/emails/${encodeURIComponent(first.id)}` });
  return { status, body: status === 200 ? { found: true, email: body } : body };
}
