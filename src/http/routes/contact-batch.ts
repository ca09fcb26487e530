import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid, validationError } from "../../core/errors.ts";
import { expectationOf } from "../../core/expectations.ts";
import { allows } from "../../core/scopes.ts";
import { check } from "../../core/validation.ts";
import { MAX_BATCH, type SavedContact, saveContacts } from "../../flows/projects/contact-batch.ts";
import { checkedAddress, type NewContact } from "../../flows/projects/contacts.ts";
import { exampleId } from "../openapi/examples.ts";
import { multiStatus } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import { ItemError, OneOf } from "../routing/schemas.ts";
import { CreateContact } from "./contacts.ts";
import { showRefusal } from "./emails/refusal.ts";

const SavedContactView = Type.Object(
  {
    id: Type.Optional(Type.String({ description: "Present if the contact was saved." })),
    email: Type.Optional(Type.String()),
    result: Type.Optional(
      OneOf(
        ["created", "updated", "unchanged"],
        "A key without `contacts:read` gets `updated` for `unchanged`.",
      ),
    ),
    error: Type.Optional(ItemError),
  },
  { title: "SavedContact" },
);
const BatchResult = Type.Object({
  data: Type.Array(SavedContactView, { description: "One result per contact, in the same order." }),
});

const LENGTH = { minItems: 1, maxItems: MAX_BATCH };
const Batch = Type.Object(
  {
    contacts: Type.Array(CreateContact, {
      ...LENGTH,
      examples: [[{ email: "ana@example.com", firstName: "Ana" }]],
    }),
  },
  { title: "ContactBatch" },
);
/** A batch with unchecked items. Each is checked separately, so that a bad one does not refuse the others. */
const Envelope = Type.Object({ contacts: Type.Array(Type.Unknown(), LENGTH) });

/** Returns the route that saves several contacts. */
export function contactBatchRoute(deps: Pick<Parts, "db" | "quotas">): Route {
  return projectRoute({
    method: "POST",
    path: "/v1/contacts/batch",
    operationId: "saveContactBatch",
    stores: { limitedBy: "handler" },
    summary: "Create or update up to 100 contacts. Each succeeds or fails separately",
    description:
      "An address that is not in the list yet is created. For one that is, the given fields change and the others stay: only `subscribed: true` subscribes an unsubscribed contact again. `metadata` replaces all keys. Items that are wrong do not stop the others.",
    scope: "contacts:write",
    body: Batch,
    bodyCheckedBy: "handler",
    examples: {
      answer: { data: [{ id: exampleId("con"), email: "ana@example.com", result: "created" }] },
    },
    answers: { 207: BatchResult },
    async handle({ senderId, project, principal, body, now, growing, record }) {
      const reads = allows(principal.scopes, "contacts:read");
      const answerOf = (outcomes: readonly (SavedContact | AppError)[]) =>
        multiStatus({ data: outcomes.map((outcome) => showOutcome(outcome, reads)) });
      const saving = { senderId, project, now, growing };
      const items = itemsOf(body).map(checkedItem);
      return answerOf(await saveContacts(deps, saving, items, (outcomes) => record(answerOf(outcomes))));
    },
  });
}

function itemsOf(body: unknown): readonly unknown[] {
  const issues = check(Envelope, body);
  if (issues.length > 0) throw validationError(issues);
  return (body as Static<typeof Envelope>).contacts;
}

function showOutcome(outcome: SavedContact | AppError, reads: boolean) {
  if (outcome instanceof AppError) return showRefusal(outcome);
  return outcome.result === "unchanged" && !reads ? { ...outcome, result: "updated" } : outcome;
}

/** Returns an item that fits, or the error that refuses it. */
export function checkedItem(item: unknown): NewContact | AppError {
  try {
    if (typeof item !== "object" || item === null || Array.isArray(item))
      throw invalid("", `The item must be ${expectationOf(CreateContact)}.`, "invalid_item");
    const issues = check(CreateContact, item);
    if (issues.length > 0) throw validationError(issues);
    checkedAddress(item as NewContact);
    return item as NewContact;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
