import { type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { type Api, bodyOf, apiHeaders } from "./api-client.ts";
import type { Output } from "./output.ts";
import { CommandError, EX_UNAVAILABLE, unavailable } from "./exit.ts";

/** An event of the live stream. */
export interface FeedEvent {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

export interface FeedDeps {
  api: Api;
  clock: Clock;
  out: Output;
}

/** Silence after which the connection counts as lost, milliseconds. The service sends a comment every 20 seconds. */
const SILENCE_MS = 60_000;
/** Pauses before the stream is opened again, milliseconds. The last one repeats. */
const PAUSES_MS: readonly number[] = [500, 1000, 2000, 5000];
/** Characters of one event at most. The largest has the bodies of a received message. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;
/** Characters of a refusal that are read. */
const MAX_REFUSAL_CHARS = 64 * 1024;

/**
 * Follows the live stream of the service, for ever. If the connection is lost, opens it again after the last event. If that is
 * too old, says that events may be missing.
 * @throws CommandError if the service refuses the stream, or cannot be reached at first
 */
export async function* followEvents(
  deps: FeedDeps,
  types: string | undefined,
): AsyncGenerator<FeedEvent, never, undefined> {
  let last: string | null = null;
  let wasOpen = false;
  for (let tries = 0; ; tries++) {
    try {
      for await (const event of openFeed(deps, types, last)) {
        if (event === "open") {
          wasOpen = true;
          tries = 0;
          continue;
        }
        last = event.id;
        yield event;
      }
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      if (last !== null && error.message.includes("invalid_state")) {
        deps.out.warn("events may be missing, because the last one is too old to continue after it");
        last = null;
      } else if (error.exitCode !== EX_UNAVAILABLE || !wasOpen) throw error;
    }
    await sleep(deps.clock, PAUSES_MS[Math.min(tries, PAUSES_MS.length - 1)] ?? 0);
  }
}

async function* openFeed(
  { api, clock }: FeedDeps,
  types: string | undefined,
  last: string | null,
): AsyncGenerator<FeedEvent | "open", void, undefined> {
  const query = types === undefined ? "" : `?${new URLSearchParams({ types })}`;
  const response = await open(api, new URL(`${api.url}/v1/events/stream${query}`), last);
  const status = response.statusCode ?? 0;
  if (status !== 200) {
    bodyOf(api, status, await startOf(response));
    throw unavailable(`${api.url} answers ${status}, and not as this service does (--url)`);
  }
  yield "open";
  let cancel = (): void => undefined;
  const watch = (): void => {
    cancel();
    cancel = clock.after(SILENCE_MS, () => response.destroy());
  };
  try {
    watch();
    yield* eventsIn(response, watch);
  } finally {
    cancel();
    response.destroy();
  }
}

/** Sends the request. Unlike fetch, it ignores HTTP_PROXY: a proxy would see the key. */
function open(api: Api, url: URL, last: string | null): Promise<IncomingMessage> {
  const headers = { ...apiHeaders(api), ...(last === null ? {} : { "Last-Event-ID": last }) };
  const start = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = start(url, { headers }, resolve);
    request.on("error", ({ message }) =>
      reject(
        unavailable(
          `${api.url} cannot be reached (${message}). Is the service running, and is this its address (--url)?`,
        ),
      ),
    );
    request.end();
  });
}

async function startOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length > MAX_REFUSAL_CHARS) break;
  }
  return text;
}

/** Reads server-sent events (HTML Living Standard, section 9.2.5), as the service writes them. */
async function* eventsIn(
  response: IncomingMessage,
  heard: () => void,
): AsyncGenerator<FeedEvent, void, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response) {
      heard();
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      if (text.length > MAX_EVENT_CHARS) throw unavailable("an event of the stream is too long");
      for (const block of blocks) {
        const event = eventOf(block);
        if (event !== null) yield event;
      }
    }
  } catch (error) {
    // A lost connection ends the stream like any other end.
    if (error instanceof CommandError) throw error;
  }
}

/** Returns the event of a block; null for a comment. */
function eventOf(block: string): FeedEvent | null {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, Math.max(0, colon)), line.slice(colon + 2)] as const;
    }),
  );
  const [id, type, data] = [fields.get("id"), fields.get("event"), fields.get("data")];
  if (id === undefined || type === undefined || data === undefined) return null;
  return { id, type, data: JSON.parse(data) };
}
