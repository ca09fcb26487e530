import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** Messages, sent and received. */
export declare class Emails {
    #private;
    constructor(api: Transport);
    /** Sends a message. Resolves when the service has stored it. */
    send(body: Body<"sendEmail">, options?: RequestOptions): ApiPromise<Answer<"sendEmail">>;
    /** Sends up to 100 messages. Each result has the id of its message, or an error. */
    sendBatch(emails: Body<"sendEmailBatch">["emails"], options?: RequestOptions): ApiPromise<Answer<"sendEmailBatch">>;
    /** Checks a message without sending it: whether it would be accepted, and what mail programs may dislike. */
    check(body: Body<"checkEmail">, options?: RequestOptions): ApiPromise<Answer<"checkEmail">>;
    /** Lists messages, newest first. */
    list(query?: Query<"listEmails">, options?: RequestOptions): List<Item<"listEmails">>;
    /** Returns a message with its body, recipients and events. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getEmail">>;
    /** Changes when a scheduled message goes out. */
    reschedule(id: string, body: Body<"rescheduleEmail">, options?: RequestOptions): ApiPromise<Answer<"rescheduleEmail">>;
    /** Cancels a scheduled message. */
    cancel(id: string, options?: RequestOptions): ApiPromise<Answer<"cancelEmail">>;
    /** Lets a message go out that waits for an approval. */
    approve(id: string, options?: RequestOptions): ApiPromise<Answer<"approveEmail">>;
    /** Ends a message that waits for an approval. */
    reject(id: string, body?: Body<"rejectEmail">, options?: RequestOptions): ApiPromise<Answer<"rejectEmail">>;
    /** Sends a captured message for real, to `to` or its own recipients. Resolves with the new message. */
    release(id: string, body?: Body<"releaseEmail">, options?: RequestOptions): ApiPromise<Answer<"releaseEmail">>;
    /** Forwards a message, inline or as an attachment. Resolves with the new message. */
    forward(id: string, body: Body<"forwardEmail">, options?: RequestOptions): ApiPromise<Answer<"forwardEmail">>;
    /** Deletes a message with its events, attempts and webhook log. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteEmail">>;
    /** Explains in plain words what became of a message, and what to do next. */
    explain(id: string, options?: RequestOptions): ApiPromise<Answer<"explainEmail">>;
    /** Lists the delivery attempts of a message with their SMTP conversations, oldest first. */
    attempts(id: string, query?: Query<"listEmailAttempts">, options?: RequestOptions): List<Item<"listEmailAttempts">>;
    /** Returns a message as raw bytes (RFC 5322). */
    raw(id: string, options?: RequestOptions): ApiPromise<Uint8Array>;
    /** Returns the html of a message as a page that runs nothing, in UTF-8. */
    preview(id: string, query?: Query<"previewEmail">, options?: RequestOptions): ApiPromise<Uint8Array>;
    /** Returns the bytes of an attachment. */
    attachment(id: string, attachmentId: string, options?: RequestOptions): ApiPromise<Uint8Array>;
}
