export const JSON_TYPE = "application/json";
/** Content type of server-sent events. Such an answer may be silent for as long as it likes. */
export const EVENT_STREAM_TYPE = "text/event-stream";

/** A note to the client in the answer to a write that succeeded. */
export interface Warning {
  /** JSON path of the field, such as `scheduled_at`. In the result of a batch item, relative to the item. */
  param: string;
  message: string;
}

/** The answer of a route, before it becomes bytes. */
export interface Answer {
  status: number;
  /** JSON, unless it is text or bytes. Those are sent unchanged with the content type in `headers`. */
  body: unknown;
  headers?: Readonly<Record<string, string>>;
  /** Warnings of the handler. They are put into the body, with those about its unknown fields. */
  warnings?: readonly Warning[];
  /** The answer itself, if the handler waits for something. Then nothing of this one is sent. */
  later?: LaterAnswer;
}

/** An answer that is made when something has happened. Ten thousand may wait, and each holds nothing else of its request. */
export interface LaterAnswer {
  /** The project or account that the memory of the answer counts for. */
  readonly owner: string;
  /** Resolves when the answer can be made. */
  ready(): Promise<void>;
  make(): Promise<Answer>;
}

/** Returns an answer that comes later. */
export function later(answer: LaterAnswer): Answer {
  return { status: 200, body: undefined, later: answer };
}

/** Returns 200 with a JSON body. */
export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** Returns 201 with a JSON body. */
export function created(body: unknown): Answer {
  return { status: 201, body };
}

/** Returns 202 with a JSON body. */
export function accepted(body: unknown): Answer {
  return { status: 202, body };
}

/** Returns 204 without a body. */
export function noContent(): Answer {
  return { status: 204, body: undefined };
}

/** Returns 207 with a JSON body, which has one outcome per item. */
export function multiStatus(body: unknown): Answer {
  return { status: 207, body };
}

/** A body that is sent unchanged. A stream is read as fast as the client takes it. */
type RawBody = Uint8Array<ArrayBuffer> | string | Blob | ReadableStream<Uint8Array>;

/** Returns an answer of bytes or text. */
export function raw(
  body: RawBody,
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { status: 200, body, headers: { "content-type": contentType, ...headers } };
}

/** Returns whether a body is sent unchanged. */
export function isRaw(body: unknown): body is RawBody {
  return (
    typeof body === "string" ||
    body instanceof Uint8Array ||
    body instanceof Blob ||
    body instanceof ReadableStream
  );
}

/** Returns the answer as a response. */
export function toResponse(answer: Answer): Response {
  const { status, body } = answer;
  if (body === undefined) return new Response(null, { status, headers: { ...answer.headers } });
  if (isRaw(body)) return new Response(body, { status, headers: { ...answer.headers } });
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": JSON_TYPE, ...answer.headers },
  });
}
