import type { WebhookEvent } from "./api.ts";
/** Name of the header with the signature. */
export declare const SIGNATURE_HEADER = "Service-Signature";
/** Why a webhook request is not to be trusted. */
export type VerificationFault = "no_signature" | "too_old" | "wrong_signature" | "wrong_body";
/** A webhook request that is forged, altered or too old. Answer it with 400. */
export declare class WebhookVerificationError extends Error {
    readonly name = "WebhookVerificationError";
    readonly code: VerificationFault;
    constructor(code: VerificationFault, message: string);
}
/** Options of `verifyWebhook`. */
export interface VerifyOptions {
    /** Seconds by which the signature's time may differ from now. Default: 300. */
    toleranceSeconds?: number;
    /** Replaces the clock: milliseconds since 1970. */
    now?: number;
}
/**
 * Checks a webhook request and returns its event. Rejects with a `WebhookVerificationError` if the request is forged, altered or
 * too old.
 * @param rawBody the exact bytes of the body: not parsed and written again
 * @param header the value of the header `Service-Signature`
 * @param secret the webhook's signing secret, or several while it is being replaced
 */
export declare function verifyWebhook(rawBody: string | Uint8Array | ArrayBuffer, header: string | null | undefined, secret: string | readonly string[], { toleranceSeconds, now }?: VerifyOptions): Promise<WebhookEvent>;
