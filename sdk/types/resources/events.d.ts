import type { WebhookEvent } from "../api.ts";
import type { Transport } from "../transport.ts";
import type { RequestOptions } from "../types.ts";
type Streamed<Event> = Event extends {
    type: infer Type;
    data: infer Data;
} ? Data & {
    type: Type;
    id: string;
} : never;
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
/** Events, as they happen. */
export declare class Events {
    #private;
    constructor(api: Transport);
    /**
     * Follows the project's events live: `for await (const event of client.events.stream())`. A lost connection is taken up
     * after the last event, so none is missed. Ends with `break` or with the signal.
     */
    stream({ types, ...filter }?: StreamFilter, options?: RequestOptions): AsyncGenerator<StreamedEvent, void, void>;
}
export {};
