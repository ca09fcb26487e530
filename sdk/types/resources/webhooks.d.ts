import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
import { verifyWebhook } from "../webhooks.ts";
/** Endpoints that events are pushed to. */
export declare class Webhooks {
    #private;
    constructor(api: Transport);
    /** Makes a webhook. Only this answer has its signing secret. */
    create(body: Body<"createWebhook">, options?: RequestOptions): ApiPromise<Answer<"createWebhook">>;
    /** Lists webhooks, newest first. */
    list(query?: Query<"listWebhooks">, options?: RequestOptions): List<Item<"listWebhooks">>;
    /** Returns a webhook. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getWebhook">>;
    /** Changes a webhook. */
    update(id: string, body: Body<"updateWebhook">, options?: RequestOptions): ApiPromise<Answer<"updateWebhook">>;
    /** Deletes a webhook and its log. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteWebhook">>;
    /** Makes a new signing secret. */
    rotateSecret(id: string, body?: Body<"rotateWebhookSecret">, options?: RequestOptions): ApiPromise<Answer<"rotateWebhookSecret">>;
    /** Lists what was pushed, newest first. */
    deliveries(id: string, query?: Query<"listWebhookDeliveries">, options?: RequestOptions): List<Item<"listWebhookDeliveries">>;
    /** Returns a delivery with its request and its attempts. */
    delivery(id: string, deliveryId: string, options?: RequestOptions): ApiPromise<Answer<"getWebhookDelivery">>;
    /** Pushes an event again. */
    replay(id: string, deliveryId: string, options?: RequestOptions): ApiPromise<Answer<"replayWebhookDelivery">>;
    /** Pushes a sample event. */
    test(id: string, body?: Body<"testWebhook">, options?: RequestOptions): ApiPromise<Answer<"testWebhook">>;
    /** Checks a request to an endpoint of yours and returns its event. Needs no API key: see also `verifyWebhook`. */
    readonly verify: typeof verifyWebhook;
}
