import type { operations } from "./api.ts";
/** Names of the API's operations. */
export type OperationId = keyof operations;
/** The JSON of an operation's answer. Undefined if it has none. */
export type Answer<Id extends OperationId> = operations[Id] extends {
    responses: infer Responses;
} ? Responses[keyof Responses] extends {
    content: {
        "application/json": infer Json;
    };
} ? Json : undefined : never;
/** The JSON of an operation's request. */
export type Body<Id extends OperationId> = operations[Id] extends {
    requestBody?: {
        content: {
            "application/json": infer Json;
        };
    };
} ? Json : never;
/** The query of an operation. */
export type Query<Id extends OperationId> = operations[Id] extends {
    parameters: {
        query?: infer Values;
    };
} ? NonNullable<Values> : never;
/** One item of an operation that lists. */
export type Item<Id extends OperationId> = Answer<Id> extends {
    data: (infer One)[];
} ? One : never;
/** A file to import: a table or lines of JSON, as text or as a Blob with its type. A Blob is read while it is sent. */
export type ImportFile = string | Blob;
/** Options of the client. */
export interface ClientOptions {
    /** An API key. Default: the environment variable `POSTRIDER_API_KEY`. */
    apiKey?: string;
    /** Origin of the service. Default: the environment variable `POSTRIDER_URL`, else `http://localhost:3000`. */
    baseUrl?: string;
    /** Id or external id of the project. An account-wide key needs it. */
    project?: string;
    /** Milliseconds for one try of a request. Default: 60 000. */
    timeoutMs?: number;
    /** Times that a request is repeated after 429, 5xx or a broken connection. Default: 2. */
    maxRetries?: number;
    /** Replaces the global `fetch`. */
    fetch?: typeof globalThis.fetch;
}
/** Options of one request. They come before those of the client. */
export interface RequestOptions {
    /** Id or external id of the project. */
    project?: string;
    /** A request with the same key and body gets the first answer again, for 24 hours. Default: one made for each POST. */
    idempotencyKey?: string;
    /** Ends the request, retries included. */
    signal?: AbortSignal;
    /** Milliseconds for one try. */
    timeoutMs?: number;
    maxRetries?: number;
    headers?: Readonly<Record<string, string>>;
}
