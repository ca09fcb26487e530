import { reasonOf } from "../../core/errors.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { type Api, bodyOf, apiHeaders } from "./api-client.ts";
import { fetchDirect, startOf } from "./direct-fetch.ts";
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
/** Maximum characters of one event. The largest has the bodies of a received message. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;
/** Maximum number of bytes read of a refusal. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/**
 * Follows the live stream of the service until it is stopped. If the connection is lost, opens it again after the
 * last event. If that is too old, says that events may be missing.
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
  const ending = new AbortController();
  const response = await open(api, new URL(`${api.url}/v1/events/stream${query}`), last, ending.signal);
  let cancel = (): void => undefined;
  const watch = (): void => {
    cancel();
    cancel = clock.after(SILENCE_MS, () => ending.abort());
  };
  try {
    watch();
    const { status } = response;
    if (status !== 200) {
      bodyOf(api, status, (await startOf(response, MAX_REFUSAL_BYTES)).toString("utf8"));
      throw unavailable(`${api.url} answers ${status}, and not as this service does (--url)`);
    }
    yield "open";
    yield* eventsIn(response, watch);
  } finally {
    cancel();
    ending.abort();
  }
}

async function open(api: Api, url: URL, last: string | null, signal: AbortSignal): Promise<Response> {
  const headers = { ...apiHeaders(api), ...(last === null ? {} : { "Last-Event-ID": last }) };
  try {
    return await fetchDirect(url, { headers, signal });
  } catch (error) {
    throw unavailable(
      `${api.url} cannot be reached (${reasonOf(error)}). Is the service running, and is this its address (--url)?`,
    );
  }
}

/** Reads server-sent events (HTML Living Standard, section 9.2.5), as the service writes them. */
async function* eventsIn(response: Response, heard: () => void): AsyncGenerator<FeedEvent, void, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) {
      heard();
      text += decoder.decode(chunk, { stream: true });
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
