/** One event of a stream. */
export interface ServerSentEvent {
    id: string;
    data: string;
}
/** Reads the events of a stream (HTML standard, section 9.2). Ends with the stream, and throws if the connection breaks. */
export declare function readServerSentEvents(body: ReadableStream<Uint8Array> | null): AsyncGenerator<ServerSentEvent, void, void>;
