import { ApiPromise, List } from "./promises.ts";
import type { Answer, Body, ClientOptions, ImportFile, Item, OperationId, Query, RequestOptions } from "./types.ts";
type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
/** The parts of a request. */
export interface Call<Id extends OperationId> {
    body?: Body<Id>;
    /** A body that is no JSON. */
    file?: ImportFile;
    query?: Query<Id> | undefined;
    options?: RequestOptions | undefined;
}
/** Sends requests. Each namespace of the client has the same one. */
export interface Transport {
    /** Sends an operation whose answer is JSON, or empty. */
    json<Id extends OperationId>(method: Method, path: string, call?: Call<Id>): ApiPromise<Answer<Id>>;
    /** Sends an operation whose answer is bytes. */
    bytes<Id extends OperationId>(path: string, call?: Call<Id>): ApiPromise<Uint8Array>;
    /** Opens an operation whose answer is a stream. The timeout ends when the answer begins. */
    open<Id extends OperationId>(path: string, call?: Call<Id>): Promise<Response>;
    /** Sends an operation that lists. */
    list<Id extends OperationId>(path: string, call?: Call<Id>): List<Item<Id>>;
}
/** Puts values into a path: path`/v1/emails/${id}`. */
export declare function path(texts: TemplateStringsArray, ...values: string[]): string;
/** Makes a transport. Throws if there is no API key. */
export declare function createTransport(options: ClientOptions): Transport;
export {};
