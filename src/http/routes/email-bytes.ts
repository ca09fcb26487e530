import { notFound } from "../../core/errors.ts";
import { attachmentBytes, type Bytes, messageBytes } from "../../flows/read/bytes.ts";
import type { Inspect } from "../../flows/readings.ts";
import type { RenderDeps } from "../../flows/send/render.ts";
import { raw } from "../answer.ts";
import { projectRoute, type Route } from "../route.ts";

export interface EmailBytesDeps extends RenderDeps {
  inspect: Inspect;
}

/** The message as bytes, and its attachments. */
export function emailBytesRoutes(deps: EmailBytesDeps): Route[] {
  return [rawRoute(deps), attachmentRoute(deps)];
}

function rawRoute(deps: RenderDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/raw",
    operationId: "getRawEmail",
    scope: "emails:read",
    summary: "Read a message as RFC 5322 bytes",
    answers: { 200: "message/rfc822" },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const bytes = await messageBytes(deps, senderId, params.id);
      if (bytes === null) throw notFound("message");
      return raw(await bodyOf(bytes), "message/rfc822", { "content-disposition": "attachment" });
    },
  });
}

function attachmentRoute(deps: EmailBytesDeps): Route {
  return projectRoute({
    method: "GET",
    path: "/v1/emails/:id/attachments/:attachmentId",
    operationId: "getEmailAttachment",
    scope: "emails:read",
    summary: "Read an attachment's bytes",
    answers: { 200: "*/*" },
    errors: ["not_found"],
    async handle({ senderId, params }) {
      const found = await attachmentBytes(deps, senderId, params.id, params.attachmentId);
      if (found === null) throw notFound("attachment");
      const { filename, contentType } = found.attachment;
      // Always a download: an attachment is a stranger's html as likely as not.
      return raw(await bodyOf(found.bytes), mediaType(contentType), {
        "content-disposition": disposition(filename),
      });
    },
  });
}

/** Octets that are read before the answer begins: all of most messages, and of larger ones what tells that they can be read. */
const READ_BEFORE = 512 * 1024;

/** The bytes as the body of an answer. Throws where they cannot be read. */
async function bodyOf({
  size,
  pieces,
}: Bytes): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  const iterator = pieces[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let octets = 0;
  while (octets < Math.min(size, READ_BEFORE)) {
    const { value, done } = await iterator.next();
    if (done === true) break;
    first.push(value);
    octets += value.length;
  }
  const read = new Uint8Array(Buffer.concat(first));
  return octets >= size ? read : streamOf(read, iterator);
}

function streamOf(read: Uint8Array, rest: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => controller.enqueue(read),
      async pull(controller) {
        const { value, done } = await rest.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: async () => void (await rest.return?.()),
    },
    { highWaterMark: 0 },
  );
}

/** The type as stored, where a header can carry it. */
function mediaType(contentType: string): string {
  return /^[\x21-\x7e]+\/[\x20-\x7e]+$/.test(contentType) ? contentType : "application/octet-stream";
}

/**
 * A download of that name: in ASCII first, for clients that know no other (RFC 6266 §4.3). What would end the quoted
 * text, or be decoded by some (`%41`), is left out of it.
 */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/gu, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${encodeName(filename)}`;
}

/** RFC 8187 §3.2. */
function encodeName(filename: string): string {
  return encodeURIComponent(filename.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
}
