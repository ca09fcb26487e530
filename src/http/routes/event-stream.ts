import { Type } from "@sinclair/typebox";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { allows } from "../../core/scopes.ts";
import { EVENT_TYPES, type EventType } from "../../core/messages/events.ts";
import type { OpenStream } from "../../flows/live/streams.ts";
import type { StreamWanted } from "../../flows/live/stream.ts";
import { resumeAfter, watch } from "../../flows/live/watch.ts";
import { MAX_RECENT, recentEvents } from "../../store/events/event-log.ts";
import { getMessage } from "../../store/messages/messages.ts";
import { EVENT_STREAM_TYPE, raw } from "../routing/answer.ts";
import { projectRoute, type Route } from "../routing/route.ts";
import type { Parts } from "../routing/parts.ts";

const MAX_TYPES_CHARS = 512;
const MAX_ID_CHARS = 64;

const StreamQuery = Type.Object({
  types: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_TYPES_CHARS,
      description: "Only events of these types, separated by commas.",
      examples: ["delivery,bounce"],
    }),
  ),
  messageId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      description: "Only events of this message.",
      examples: ["msg_01hzy8"],
    }),
  ),
  lastEventId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_ID_CHARS,
      examples: ["evt_01hzy8"],
      description:
        "Start after this event, which must be of the last hour and from a stream of this project. The header `Last-Event-ID` does the same.",
    }),
  ),
  drafts: Type.Optional(
    Type.Boolean({
      description:
        "If true, a key with `drafts:write` also gets `draft_saved`, with the `draftId`, when a program saves a draft.",
    }),
  ),
  recent: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_RECENT,
      examples: [50],
      description:
        "Number of the newest events to begin with, oldest first. They are of as many of the newest messages, or of the last hour. With it, a stream that cannot start after `lastEventId` begins like this too.",
    }),
  ),
});

/** Sent first, so that the client knows that the stream is open. `retry`: milliseconds until a browser connects again. */
const GREETING = Buffer.from("retry: 1000\n: open\n\n");

/** Returns the route of the live stream. */
export function eventStreamRoute(deps: Parts): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/events/stream",
    operationId: "streamEvents",
    scope: "emails:read",
    summary: "Follow events live",
    description:
      "Server-sent events: `event` is the type, `id` the id of the event, and `data` the JSON that a webhook has in `data`, with `type`. Events come in the order of their commits, as they commit. A comment comes every 20 seconds. The stream ends if its key is revoked or its client reads too slowly. A client that lost it opens it again with the last `id` in `Last-Event-ID`, and misses nothing of the last hour.",
    browserLoads: true,
    query: StreamQuery,
    answers: { 200: EVENT_STREAM_TYPE },
    errors: ["conflict", "not_found"],
    async handle({ senderId, principal, query, request }) {
      const types = query.types === undefined ? null : typesOf(query.types);
      const messageId = query.messageId ?? null;
      if (messageId !== null && (await getMessage(deps.db, senderId, messageId)) === null)
        throw notFound("message");
      const lastEventId = request.headers.get("last-event-id") || query.lastEventId;
      const start = await startOf(deps, senderId, lastEventId || null, query.recent ?? 0);
      const drafts = query.drafts === true && allows(principal.scopes, "drafts:write");
      const filter = { types, messageId, drafts };
      const body = bodyOf(deps.streams.admit({ senderId, grant: principal.grant, filter, ...start }));
      // Without these, nginx would collect the events, and other proxies might compress them.
      return raw(body, EVENT_STREAM_TYPE, {
        "cache-control": "no-store, no-transform",
        "x-accel-buffering": "no",
      });
    },
  });
}

/** Returns where a stream starts. */
async function startOf(
  deps: Parts,
  senderId: string,
  lastEventId: string | null,
  recent: number,
): Promise<Pick<StreamWanted, "position" | "recent">> {
  const newest = await watch(deps, senderId);
  if (lastEventId !== null) {
    const position = await resumeAfter(deps, senderId, lastEventId);
    if (position !== null) return { position, recent: [] };
    if (recent === 0)
      throw new AppError(
        "conflict",
        "A stream resumes after one of its events of the last hour, and this is none. Open a new stream, and read what was missed with GET /v1/emails.",
        { code: "invalid_state", param: "lastEventId" },
      );
  }
  return {
    position: newest,
    recent: recent === 0 ? [] : await recentEvents(deps.db, senderId, newest, recent),
  };
}

function typesOf(text: string): Set<EventType> {
  const known: ReadonlySet<string> = new Set(EVENT_TYPES);
  const types = text.split(",").map((type) => type.trim());
  const unknown = types.find((type) => !known.has(type));
  if (unknown !== undefined)
    throw invalid(
      "types",
      `${JSON.stringify(unknown)} is no event type. There are ${EVENT_TYPES.join(", ")}.`,
    );
  return new Set(types as EventType[]);
}

/** Returns a body that opens the stream when it is first read. The answer to HEAD is never read. */
function bodyOf(open: () => OpenStream): ReadableStream<Uint8Array> {
  let stream: OpenStream | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (stream === null) {
          stream = open();
          // Given no error, Bun prints none.
          stream.onCut = () => controller.error(undefined);
          controller.enqueue(GREETING);
          return;
        }
        const piece = await stream.next().catch(() => null);
        if (piece !== null) return controller.enqueue(piece);
        stream.end();
        controller.close();
      },
      cancel() {
        stream?.end();
      },
    },
    { highWaterMark: 0 },
  );
}
