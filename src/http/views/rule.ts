import { type Static, Type } from "@sinclair/typebox";
import { TRUSTS } from "../../core/messages/sender.ts";
import { MAX_PATTERN_CHARS, MAX_POSITION, MAX_REJECT_CHARS, RULE_FOLDERS } from "../../core/rules/rule.ts";
import { NOT_FORWARDED } from "../../core/rules/forwarding.ts";
import { NOT_ANSWERED } from "../../core/rules/automatic-reply.ts";
import type { Trial } from "../../flows/rules/try-rules.ts";
import { MAX_BOUNCES, MAX_FAILURES } from "../../store/rules/rule-effects.ts";
import type { Rule } from "../../store/rules/rules.ts";
import {
  MAX_ID_CHARS,
  MAX_NAME_CHARS,
  Nullable,
  ONE_LINE,
  OneOf,
  showTime,
  Timestamp,
} from "../routing/schemas.ts";
import { AppliedRuleView } from "./received.ts";
import { Labels } from "./thread.ts";

const pattern = (description: string, example: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_PATTERN_CHARS,
      ...ONE_LINE,
      description,
      examples: [example],
    }),
  );

const When = Type.Object(
  {
    from: pattern("The address in From.", "*@example.com"),
    to: pattern("An address in To or Cc, or a recipient of the SMTP transaction.", "sales@"),
    subject: pattern("The subject.", "invoice"),
    header: Type.Optional(
      Type.Object(
        {
          name: Type.String({
            pattern: "^[!-9;-~]{1,100}$",
            expected: "the name of a header field",
            examples: ["List-Id"],
          }),
          value: pattern("If left out, the field only has to be there.", "news.example.com"),
        },
        { description: "The first field of that name." },
      ),
    ),
    hasAttachment: Type.Optional(Type.Boolean()),
    largerThan: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_POSITION, description: "Bytes." })),
    auth: Type.Optional(OneOf(["pass", "fail"], "`pass`: DMARC proves the author. `fail`: it does not.")),
    trust: Type.Optional(
      OneOf(TRUSTS, "`sender.trust` of the record. Mail of blocked senders meets no rules."),
    ),
    spamScoreAbove: Type.Optional(
      Type.Number({
        minimum: -1000,
        maximum: 1000,
        examples: [8],
        description: "A message without a verdict of the spam filter does not match.",
      }),
    ),
  },
  {
    additionalProperties: false,
    title: "RuleConditions",
    description:
      "All must hold; none: every message. A string matches anywhere in the value, or at its end if it begins with `*`. Case does not count.",
    examples: [{ header: { name: "List-Id" } }],
  },
);

const Then = Type.Object(
  {
    labels: Type.Optional(Labels("Labels that the conversation gets in addition.")),
    assigneeId: Type.Optional(
      Type.String({
        maxLength: MAX_ID_CHARS,
        description: "The member who gets the conversation, unless it has one.",
        examples: ["mem_01hzy8"],
      }),
    ),
    folder: Type.Optional(
      OneOf(
        RULE_FOLDERS,
        "`inbox` keeps the conversation out of spam, whatever the spam filter says. `spam` and `trash` keep it for 30 days.",
      ),
    ),
    replyTemplateId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "Id or slug of the template that answers the message; its data has `from` and `subject`. Each author gets one reply a day from the rule. Mail of unproven authors, lists and programs gets none.",
        examples: ["out-of-office"],
      }),
    ),
    forwardTo: Type.Optional(
      Type.String({
        maxLength: 320,
        expected: "a confirmed forward address",
        description:
          "The confirmed address (`/v1/forward-addresses`) that gets the message as it came. Spam, bounces and answers of programs are not forwarded.",
        examples: ["ana@example.com"],
      }),
    ),
    archive: Type.Optional(Type.Boolean({ description: "Archives the conversation." })),
    markRead: Type.Optional(Type.Boolean({ description: "Marks the conversation as read." })),
    reject: Type.Optional(
      Type.String({
        pattern: `^[ -~]{1,${MAX_REJECT_CHARS}}$`,
        expected: `1 to ${MAX_REJECT_CHARS} printable ASCII characters`,
        examples: ["No advertising, please"],
        description: "Refuses the message with 550 5.7.1 and this text. Only its header is kept.",
      }),
    ),
    drop: Type.Optional(
      Type.Boolean({ description: "Accepts the message, and keeps only its header, as `inbound_rejected`." }),
    ),
    stop: Type.Optional(Type.Boolean({ description: "Skips all later rules." })),
  },
  {
    additionalProperties: false,
    title: "RuleActions",
    description: "At least one. `reject` and `drop` skip all later rules.",
    examples: [{ archive: true }],
  },
);

/** The fields of a rule that a client gives. */
export const RULE_FIELDS = {
  inboxId: Nullable(
    Type.String({ description: "Null: every inbox of the project.", examples: ["inb_01hzy8"] }),
  ),
  position: Type.Integer({
    minimum: 0,
    maximum: MAX_POSITION,
    description: "Rules apply in ascending order. A new rule without one is the last.",
  }),
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS, ...ONE_LINE, examples: ["Newsletters"] }),
  enabled: Type.Boolean(),
  when: When,
  then: Then,
};
export const RuleView = Type.Object(
  {
    id: Type.String(),
    ...RULE_FIELDS,
    disabledReason: Nullable(
      Type.String({
        description: `Why the service disabled the rule: what it does failed ${MAX_FAILURES} times in a row, or ${MAX_BOUNCES} forwards came back. Null: it did not.`,
        examples: ["The template does not exist."],
      }),
    ),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: "Rule" },
);

/** Returns a rule as the API shows it. */
export function showRule(
  { senderId: _, createdAt, updatedAt, ...rule }: Rule,
  disabledReason: string | null,
): Static<typeof RuleView> {
  return { ...rule, disabledReason, createdAt: showTime(createdAt), updatedAt: showTime(updatedAt) };
}

/** Why something is not done. @param known reasons that are no codes of errors, as a list */
function whyNot(known: string) {
  return Nullable(
    Type.String({
      description: `Why it would not be sent: ${known}, \`suppressed_recipient\`, or the code of the error that refuses it. Null: it would be sent.`,
    }),
  );
}

function listed(reasons: readonly string[]): string {
  return reasons.map((reason) => `\`${reason}\``).join(", ");
}

export const TrialView = Type.Object(
  {
    emailId: Type.String(),
    rules: Type.Array(
      Type.Object({
        ...AppliedRuleView.properties,
        matched: Type.Boolean(),
        conditions: Type.Array(
          Type.Object({
            condition: Type.String({ examples: ["from"] }),
            met: Type.Boolean(),
          }),
          { description: "In the order of their checks, up to the first that is not met." },
        ),
      }),
      { description: "The enabled rules of the message's inbox in order, up to the one that ends them." },
    ),
    outcome: Type.Object({
      labels: Type.Array(Type.String({ examples: ["billing"] })),
      assigneeId: Nullable(Type.String({ examples: ["mem_01hzy8"] })),
      folder: Nullable(
        OneOf(RULE_FOLDERS, "Null: no rule decides. The spam filter does, for a new conversation."),
      ),
      archive: Type.Boolean(),
      markRead: Type.Boolean(),
      reply: Nullable(
        Type.Object(
          {
            ruleId: Type.String({ examples: ["rul_01hzy8"] }),
            templateId: Type.String({ examples: ["out-of-office"] }),
            reason: whyNot(`${listed(NOT_ANSWERED)}, \`answered_today\`, \`message_gone\``),
          },
          { description: "The answer. Null: no rule answers." },
        ),
      ),
      forwards: Type.Array(
        Type.Object({
          ruleId: Type.String({ examples: ["rul_01hzy8"] }),
          to: Type.String({ examples: ["ana@example.com"] }),
          reason: whyNot(`${listed(NOT_FORWARDED)}, \`address_not_confirmed\`, \`content_gone\``),
        }),
        { description: "The forwards, each to another address." },
      ),
      reject: Nullable(Type.String({ description: "The text of the refusal." })),
      drop: Type.Boolean(),
    }),
  },
  { title: "RuleTrial" },
);

/** Returns what the rules did to a message on trial. */
export function showTrial(emailId: string, { checked, ruling }: Trial): Static<typeof TrialView> {
  const { refusal, applied: _, labels, ...does } = ruling;
  return {
    emailId,
    rules: checked.map(({ rule: { id, name }, ...result }) => ({ id, name, ...result })),
    outcome: {
      ...does,
      labels: [...labels],
      reject: refusal?.how === "reject" ? refusal.text : null,
      drop: refusal?.how === "drop",
    },
  };
}
