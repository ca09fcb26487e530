import { type Static, Type } from "@sinclair/typebox";
import { addressKey } from "../../core/addresses.ts";
import { requiredAddress } from "../../core/messages/address-input.ts";
import { seal } from "../../core/crypto/secretbox.ts";
import { AppError, existing } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import { countRunning, type Erasure, getErasure, insertErasure } from "../../store/erasures/erasures.ts";
import { namedProject, projectOf } from "../access/project.ts";
import { accepted, ok } from "../routing/answer.ts";
import type { Parts } from "../routing/parts.ts";
import { accountRoute, type Route } from "../routing/route.ts";
import { EMAIL, Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";

/** Maximum number of erasures of an account in progress. */
export const MAX_RUNNING = 1000;

const ErasureView = Type.Object(
  {
    id: Type.String(),
    status: OneOf(
      ["running", "done"],
      "`running` also while a recipient is in progress: its message goes once that is final.",
    ),
    counts: Type.Object(
      {
        messages: Type.Integer({
          description: "With their bodies, raw bytes, files, events and webhook log.",
        }),
        contacts: Type.Integer(),
        suppressions: Type.Integer({
          description: "They stay as keyed hashes, so the address stays suppressed.",
        }),
      },
      { title: "ErasureCounts", description: "Numbers so far." },
    ),
    createdAt: Timestamp,
    endedAt: Nullable(Timestamp),
  },
  { title: "Erasure" },
);

function show({ id, status, counts, createdAt, endedAt }: Erasure): Static<typeof ErasureView> {
  const { messages = 0, contacts = 0, suppressions = 0 } = counts;
  return {
    id,
    status,
    counts: { messages, contacts, suppressions },
    createdAt: showTime(createdAt),
    endedAt: showTime(endedAt),
  };
}

/** Returns the routes of `/v1/erasures`. */
export function erasureRoutes(deps: Parts): Route[] {
  return [createRoute(deps), getRoute(deps)];
}

function createRoute({ db, boxKey }: Parts): Route {
  return accountRoute({
    method: "POST",
    path: "/v1/erasures",
    operationId: "createErasure",
    evenFull: true,
    scope: "data:delete",
    summary: "Erase an address",
    description:
      "Removes in steps every message that is from or to the address or names it in its header, with events, IP addresses, user agents and webhook log, and its contact, from the project, or from all projects of an account-wide key that names none. A suppression stays as a keyed hash. Mail of others that only mentions the address in its text stays, and so does a member with the address.",
    examples: { body: { email: "ana@example.com" } },
    body: Type.Object({ email: Type.String(EMAIL) }),
    answers: { 202: ErasureView },
    errors: ["conflict", "not_found"],
    async handle({ principal, body, now, request, record }) {
      const key = addressKey(requiredAddress(body.email, "email"));
      const project = await projectOf(db, principal, namedProject(request.headers));
      const { accountId } = principal;
      if ((await countRunning(db, accountId, MAX_RUNNING)) >= MAX_RUNNING)
        throw new AppError(
          "conflict",
          `At most ${MAX_RUNNING} erasures run at a time. Wait until some are done.`,
        );
      const erasure: Erasure = {
        ...BEGINNING,
        id: newId("era", now),
        accountId,
        senderId: project?.id ?? null,
        sealedEmail: seal(boxKey, key),
        createdAt: now,
      };
      const answer = accepted(show(erasure));
      await db.write([insertErasure(erasure), ...record(answer)]);
      return answer;
    },
  });
}

const BEGINNING = {
  status: "running",
  projectAt: "",
  messageAt: "",
  blocked: 0,
  pagesLeft: null,
  counts: {},
  endedAt: null,
} as const;

function getRoute({ db }: Parts): Route {
  return accountRoute({
    method: "GET",
    path: "/v1/erasures/:id",
    operationId: "getErasure",
    scope: "data:delete",
    summary: "Get an erasure",
    description: "Its state, and the number of what was removed so far. It does not show the address.",
    answers: { 200: ErasureView },
    errors: ["not_found"],
    async handle({ principal, params }) {
      const { accountId, senderId } = principal;
      return ok(show(existing("erasure", await getErasure(db, accountId, senderId, params.id))));
    },
  });
}
