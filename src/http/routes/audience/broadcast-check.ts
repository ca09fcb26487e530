import { Type } from "@sinclair/typebox";
import { checkBroadcast } from "../../../flows/broadcasts/check.ts";
import { askLinks, MAX_ASKED_LINKS, MAX_REDIRECTS } from "../../../flows/broadcasts/links.ts";
import { MAX_TEST_ADDRESSES, testBroadcast, type TestSend } from "../../../flows/broadcasts/test-sends.ts";
import { requiredAddress } from "../../../core/messages/address-input.ts";
import { accepted, ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { projectRoute, type Route } from "../../routing/route.ts";
import { EMAIL, MAX_ID_CHARS, Nullable } from "../../routing/schemas.ts";
import { CheckView } from "../emails/email-check.ts";
import { showRefusal } from "../emails/refusal.ts";

const BroadcastCheckView = Type.Object(
  {
    ...CheckView.properties,
    contacts: Type.Integer({ description: "Contacts that pass the filter of its segment now." }),
    missing: Type.Array(
      Type.Object({
        variable: Type.String({ examples: ["contact.firstName"] }),
        contacts: Type.Integer({ description: "Contacts without a value for it." }),
      }),
      {
        description:
          "Values that the content shows and contacts lack. A variable with a `default` filter, in an `if`, or of a property with a fallback is left out.",
      },
    ),
  },
  { title: "BroadcastCheck" },
);

const LinksView = Type.Object(
  {
    links: Type.Array(
      Type.Object({
        url: Type.String({ examples: ["https://example.com/news"] }),
        works: Nullable(
          Type.Boolean({
            description:
              "False: its server is gone, or answers 404, 410 or a fault. Null: it may refuse programs alone, or was not asked.",
          }),
        ),
        status: Nullable(Type.Integer({ description: "Of the last answer.", examples: [200] })),
        problem: Nullable(Type.String({ examples: ["answers 404"] })),
      }),
    ),
  },
  { title: "BroadcastLinks" },
);

const TestBroadcast = Type.Object(
  {
    to: Type.Array(Type.String(EMAIL), { minItems: 1, maxItems: MAX_TEST_ADDRESSES }),
    contactId: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: MAX_ID_CHARS,
          description:
            "The contact whose values it shows. Default: the first of the segment whose values fit.",
          examples: ["con_01hzy8"],
        }),
      ),
    ),
  },
  { title: "TestBroadcast" },
);
const TestAnswer = Type.Object(
  { messages: Type.Array(Type.Object({ id: Type.String(), to: Type.String() })) },
  { title: "TestedBroadcast" },
);

/** Returns the routes that check a broadcast and send a test of it. */
export function broadcastCheckRoutes(deps: Parts): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/broadcasts/:id/check",
      operationId: "checkBroadcast",
      readsOnly: true,
      costly: "content",
      summary: "Check a broadcast without sending it",
      description:
        "Says whether it would be sent, how many contacts it goes to, what they lack, and what may keep it from its readers. The message is that of the first contact whose values fit into it.",
      scope: "audience:read",
      answers: { 200: BroadcastCheckView },
      errors: ["not_found"],
      async handle({ project, principal, params: { id }, now }) {
        const acting = { project, by: principal, now };
        const { error, missing, ...found } = await checkBroadcast(deps, acting, id);
        const wouldAccept = error === null && missing.length === 0;
        return ok({ wouldAccept, ...(error === null ? {} : showRefusal(error)), missing, ...found });
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/broadcasts/:id/check-links",
      operationId: "checkBroadcastLinks",
      readsOnly: true,
      costly: "lookups",
      summary: "Check the links of a broadcast",
      description: `Asks each http(s) link of the message that the first contact would get, at most ${MAX_ASKED_LINKS}, and follows ${MAX_REDIRECTS} redirects. It takes up to 20 s. Only public addresses are asked.`,
      scope: "audience:write",
      answers: { 200: LinksView },
      errors: ["not_found", "permission_error", "validation_error", "conflict"],
      async handle({ project, principal, params: { id }, now }) {
        return ok({ links: await askLinks(deps, { project, by: principal, now }, id) });
      },
    }),
    projectRoute({
      method: "POST",
      path: "/v1/broadcasts/:id/test",
      operationId: "testBroadcast",
      stores: { limitedBy: "handler" },
      costly: "content",
      summary: "Send a test of a broadcast",
      description:
        "Sends it to some addresses, with the values of a contact and `[Test]` in front of the subject. Its link to unsubscribe does nothing.",
      scope: "audience:write",
      alsoScope: "emails:send",
      examples: { body: { to: ["ana@mail.example.com"] } },
      body: TestBroadcast,
      answers: { 202: TestAnswer },
      errors: ["not_found", "permission_error", "validation_error", "conflict"],
      async handle({ project, principal, params: { id }, body, now, record }) {
        const { contactId = null } = body;
        const to = body.to.map((address, at) => requiredAddress(address, `to[${at}]`));
        const acting = { project, by: principal, now };
        const answer = (messages: readonly TestSend[]) => accepted({ messages: [...messages] });
        return answer(
          await testBroadcast(deps, acting, id, { to, contactId }, (sent) => record(answer(sent))),
        );
      },
    }),
  ];
}
