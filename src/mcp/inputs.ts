import { Type } from "@sinclair/typebox";
import type { Args } from "./tool.ts";

/** A string. */
export const textInput = (description: string) => Type.String({ description });
/** True or false. */
export const flagInput = (description: string) => Type.Boolean({ description });
const objectInput = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description });
/** Addresses. Agents often give a single one as a string. */
export const addressesInput = (description: string) =>
  Type.Union([Type.Array(Type.String()), Type.String()], {
    description,
    examples: [["ana@example.com"]],
  });
/** One of the values. */
export const choiceInput = (...choices: string[]) =>
  Type.Union(choices.map((choice) => Type.Literal(choice)));

/** Inputs of a list. */
export const PAGE = {
  limit: Type.Integer({ minimum: 1, maximum: 100, description: "Items in the answer, 20 if absent." }),
  cursor: textInput("`nextCursor` of the page before."),
};

/** Inputs of a message to send. */
export const MESSAGE_INPUT = {
  from: textInput(
    "The sender, as `a@b` or `Name <a@b>`. Its domain must be verified, or be the onboarding domain.",
  ),
  to: addressesInput("Recipients, as `a@b` or `Name <a@b>`."),
  cc: addressesInput("Copies."),
  bcc: addressesInput("Hidden copies."),
  replyTo: addressesInput("Addresses for answers."),
  subject: textInput("The subject. It may be left out with a template."),
  text: textInput("The plain text."),
  html: textInput("The html."),
  templateId: textInput("Id or slug of a saved template, in place of text and html."),
  data: objectInput("Values for the template's placeholders."),
  scheduledAt: textInput("ISO 8601 time at which to send."),
  tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }), {
    description: "Tags to find the message by.",
    examples: [[{ name: "campaign", value: "spring" }]],
  }),
};

/** Strangers' words that answers may hold. */
export const MAIL = "email written by other people";

/** Returns the arguments without some. */
export function without(args: Args, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(args).filter(([name]) => !names.includes(name)));
}
