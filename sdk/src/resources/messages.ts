import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** Messages, sent and received. */
export class Emails {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Sends a message. Resolves when the service has stored it. */
  send(body: Body<"sendEmail">, options?: RequestOptions): ApiPromise<Answer<"sendEmail">> {
    return this.#api.json<"sendEmail">("POST", "/v1/emails", { body, options });
  }

  /** Sends up to 100 messages. Each result has the id of its message, or an error. */
  sendBatch(
    emails: Body<"sendEmailBatch">["emails"],
    options?: RequestOptions,
  ): ApiPromise<Answer<"sendEmailBatch">> {
    return this.#api.json<"sendEmailBatch">("POST", "/v1/emails/batch", { body: { emails }, options });
  }

  /** Checks a message without sending it: whether it would be accepted, and what mail programs may dislike. */
  check(body: Body<"checkEmail">, options?: RequestOptions): ApiPromise<Answer<"checkEmail">> {
    return this.#api.json<"checkEmail">("POST", "/v1/emails/check", { body, options });
  }

  /** Lists messages, newest first. */
  list(query?: Query<"listEmails">, options?: RequestOptions): List<Item<"listEmails">> {
    return this.#api.list<"listEmails">("/v1/emails", { query, options });
  }

  /** Returns a message with its body, recipients and events. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getEmail">> {
    return this.#api.json<"getEmail">("GET", path`/v1/emails/${id}`, { options });
  }

  /** Changes when a scheduled message goes out. */
  reschedule(
    id: string,
    body: Body<"rescheduleEmail">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"rescheduleEmail">> {
    return this.#api.json<"rescheduleEmail">("PATCH", path`/v1/emails/${id}`, { body, options });
  }

  /** Cancels a scheduled message. */
  cancel(id: string, options?: RequestOptions): ApiPromise<Answer<"cancelEmail">> {
    return this.#api.json<"cancelEmail">("POST", path`/v1/emails/${id}/cancel`, { options });
  }

  /** Lets a message go out that waits for an approval. */
  approve(id: string, options?: RequestOptions): ApiPromise<Answer<"approveEmail">> {
    return this.#api.json<"approveEmail">("POST", path`/v1/emails/${id}/approve`, { options });
  }

  /** Ends a message that waits for an approval. */
  reject(
    id: string,
    body: Body<"rejectEmail"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"rejectEmail">> {
    return this.#api.json<"rejectEmail">("POST", path`/v1/emails/${id}/reject`, { body, options });
  }

  /** Sends a captured message for real, to `to` or its own recipients. Resolves with the new message. */
  release(
    id: string,
    body: Body<"releaseEmail"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"releaseEmail">> {
    return this.#api.json<"releaseEmail">("POST", path`/v1/emails/${id}/release`, { body, options });
  }

  /** Forwards a message, inline or as an attachment. Resolves with the new message. */
  forward(
    id: string,
    body: Body<"forwardEmail">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"forwardEmail">> {
    return this.#api.json<"forwardEmail">("POST", path`/v1/emails/${id}/forward`, { body, options });
  }

  /** Deletes a message with its events, attempts and webhook log. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteEmail">> {
    return this.#api.json<"deleteEmail">("DELETE", path`/v1/emails/${id}`, { options });
  }

  /** Explains in plain words what became of a message, and what to do next. */
  explain(id: string, options?: RequestOptions): ApiPromise<Answer<"explainEmail">> {
    return this.#api.json<"explainEmail">("GET", path`/v1/emails/${id}/explain`, { options });
  }

  /** Lists the delivery attempts of a message with their SMTP conversations, oldest first. */
  attempts(
    id: string,
    query?: Query<"listEmailAttempts">,
    options?: RequestOptions,
  ): List<Item<"listEmailAttempts">> {
    return this.#api.list<"listEmailAttempts">(path`/v1/emails/${id}/attempts`, { query, options });
  }

  /** Returns a message as raw bytes (RFC 5322). */
  raw(id: string, options?: RequestOptions): ApiPromise<Uint8Array> {
    return this.#api.bytes<"getRawEmail">(path`/v1/emails/${id}/raw`, { options });
  }

  /** Returns the html of a message as a page that runs nothing, in UTF-8. */
  preview(id: string, query?: Query<"previewEmail">, options?: RequestOptions): ApiPromise<Uint8Array> {
    return this.#api.bytes<"previewEmail">(path`/v1/emails/${id}/preview`, { query, options });
  }

  /** Returns the bytes of an attachment. */
  attachment(id: string, attachmentId: string, options?: RequestOptions): ApiPromise<Uint8Array> {
    return this.#api.bytes<"getEmailAttachment">(path`/v1/emails/${id}/attachments/${attachmentId}`, {
      options,
    });
  }
}
