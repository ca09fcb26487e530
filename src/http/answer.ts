/** Content type of JSON. */
export const JSON_TYPE = "application/json";

/** What a route answers with, before it becomes bytes. */
export interface Answer {
  status: number;
  /** JSON, unless it is text or bytes, which go out as they are with the content type in `headers`. */
  body: unknown;
  headers?: Readonly<Record<string, string>>;
}

/** 200 with a JSON body. */
export function ok(body: unknown): Answer {
  return { status: 200, body };
}

/** 201 with a JSON body. */
export function created(body: unknown): Answer {
  return { status: 201, body };
}

/** 202 with a JSON body. */
export function accepted(body: unknown): Answer {
  return { status: 202, body };
}

/** 204 without a body. */
export function noContent(): Answer {
  return { status: 204, body: undefined };
}

/** 207 with a JSON body: one outcome an item. */
export function multiStatus(body: unknown): Answer {
  return { status: 207, body };
}

/** A body that goes out as it is; a stream is read as fast as the client takes it. */
type RawBody = Uint8Array<ArrayBuffer> | string | Blob | ReadableStream<Uint8Array>;

/** Bytes or text as they are. */
export function raw(
  body: RawBody,
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { status: 200, body, headers: { "content-type": contentType, ...headers } };
}

/** Whether a body goes out as it is. */
export function isRaw(body: unknown): body is RawBody {
  return (
    typeof body === "string" ||
    body instanceof Uint8Array ||
    body instanceof Blob ||
    body instanceof ReadableStream
  );
}

/** The answer as a response. */
export function toResponse(answer: Answer): Response {
  const { status, body } = answer;
  if (body === undefined) return new Response(null, { status, headers: { ...answer.headers } });
  if (isRaw(body)) return new Response(body, { status, headers: { ...answer.headers } });
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": JSON_TYPE, ...answer.headers },
  });
}
