import { Type } from "@sinclair/typebox";
import { flagInput, PAGE, textInput } from "./inputs.ts";
import type { Tool } from "./tool.ts";
import { withQuery } from "./tool.ts";

/** Strangers' words that a contact may hold. */
const NAMES = "names and values that people gave in forms";
const record = (description: string) => Type.Record(Type.String(), Type.Unknown(), { description });

/** The tools of contacts. Segments and topics are made by people, so an agent only uses those that are there. */
export const AUDIENCE_TOOLS: readonly Tool[] = [
  {
    name: "list_contacts",
    title: "List contacts",
    description: "Returns contacts with their properties and topics, newest first.",
    scopes: ["contacts:read"],
    input: {
      q: textInput("Part of the address or the name."),
      filter: textInput(
        'A filter of segments as JSON, such as `{"all":[{"property":"plan","op":"eq","value":"pro"},{"field":"lastOpenedAt","op":"withinDays","value":30}]}`.',
      ),
      subscribed: flagInput("Only those who are subscribed, or only those who are not."),
      ...PAGE,
    },
    readOnly: true,
    strangersWords: NAMES,
    run: (call, args) => call({ method: "GET", path: withQuery("/v1/contacts", args) }),
  },
  {
    name: "save_contact",
    title: "Save a contact",
    description:
      "Creates a contact, or changes the fields that are given. `subscribed: true` needs the word of the person.",
    scopes: ["contacts:write"],
    input: {
      email: textInput("The address."),
      firstName: textInput("First name."),
      lastName: textInput("Last name."),
      properties: record("Values by the name of their property; null removes one."),
      topics: record("`subscribed` or `unsubscribed` by the id of the topic."),
      subscribed: flagInput("Whether the person gets mail with an unsubscribe link."),
    },
    required: ["email"],
    readOnly: false,
    strangersWords: null,
    run: (call, args) =>
      call({ method: "POST", path: "/v1/contacts/batch", body: { contacts: [{ ...args }] } }),
  },
];
