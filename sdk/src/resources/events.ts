import type { WebhookEvent } from "../api.ts";
import { PostriderError } from "../errors.ts";
import { readServerSentEvents } from "../server-sent-events.ts";
import type { Transport } from "../transport.ts";
import type { RequestOptions } from "../types.ts";

type Streamed<Event> = Event extends { type: infer Type; data: infer Data }
  ? Data & { type: Type; id: string }
  : never;
/** An event of the live stream: what a webhook has in `data`, with the event's `type` and `id`. */
export type StreamedEvent = Streamed<WebhookEvent>;

/** Which events a stream has. */
export interface StreamFilter {
  /** Only these types. */
  types?: readonly WebhookEvent["type"][];
  /** Only events of this message. */
  messageId?: string;
  /** Start after this event, which must be of the last hour. */
  lastEventId?: string;
  /** Number of the newest events to begin with, at most 100. */
  recent?: number;
}

/** Milliseconds between two connections of a stream. */
const RECONNECT_MS = 1000;

/** Events, as they happen. */
export class Events {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /**
   * Follows the project's events live: `for await (const event of client.events.stream())`. A lost connection is taken up
   * after the last event, so none is missed. Ends with `break` or with the signal.
   */
  async *stream(
    { types, ...filter }: StreamFilter = {},
    options: RequestOptions = {},
  ): AsyncGenerator<StreamedEvent, void, void> {
    let { lastEventId } = filter;
    for (;;) {
      const query = {
        ...filter,
        ...(types === undefined ? {} : { types: types.join(",") }),
        ...(lastEventId === undefined ? {} : { lastEventId }),
      };
      const { body } = await this.#api.open<"streamEvents">("/v1/events/stream", { query, options });
      try {
        for await (const { id, data } of readServerSentEvents(body)) {
          lastEventId = id;
          yield { ...JSON.parse(data), id } as StreamedEvent;
        }
      } catch (error) {
        options.signal?.throwIfAborted();
        // An error of the loop that reads the events does not come here.
        if (error instanceof PostriderError) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
      options.signal?.throwIfAborted();
    }
  }
}
