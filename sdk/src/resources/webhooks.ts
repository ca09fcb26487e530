import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
import { verifyWebhook } from "../webhooks.ts";

/** Endpoints that events are pushed to. */
export class Webhooks {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes a webhook. Only this answer has its signing secret. */
  create(body: Body<"createWebhook">, options?: RequestOptions): ApiPromise<Answer<"createWebhook">> {
    return this.#api.json<"createWebhook">("POST", "/v1/webhooks", { body, options });
  }

  /** Lists webhooks, newest first. */
  list(query?: Query<"listWebhooks">, options?: RequestOptions): List<Item<"listWebhooks">> {
    return this.#api.list<"listWebhooks">("/v1/webhooks", { query, options });
  }

  /** Returns a webhook. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getWebhook">> {
    return this.#api.json<"getWebhook">("GET", path`/v1/webhooks/${id}`, { options });
  }

  /** Changes a webhook. */
  update(
    id: string,
    body: Body<"updateWebhook">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateWebhook">> {
    return this.#api.json<"updateWebhook">("PATCH", path`/v1/webhooks/${id}`, { body, options });
  }

  /** Deletes a webhook and its log. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteWebhook">> {
    return this.#api.json<"deleteWebhook">("DELETE", path`/v1/webhooks/${id}`, { options });
  }

  /** Makes a new signing secret. */
  rotateSecret(
    id: string,
    body: Body<"rotateWebhookSecret"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"rotateWebhookSecret">> {
    return this.#api.json<"rotateWebhookSecret">("POST", path`/v1/webhooks/${id}/rotate-secret`, {
      body,
      options,
    });
  }

  /** Lists what was pushed, newest first. */
  deliveries(
    id: string,
    query?: Query<"listWebhookDeliveries">,
    options?: RequestOptions,
  ): List<Item<"listWebhookDeliveries">> {
    return this.#api.list<"listWebhookDeliveries">(path`/v1/webhooks/${id}/deliveries`, { query, options });
  }

  /** Returns a delivery with its request and its attempts. */
  delivery(
    id: string,
    deliveryId: string,
    options?: RequestOptions,
  ): ApiPromise<Answer<"getWebhookDelivery">> {
    return this.#api.json<"getWebhookDelivery">("GET", path`/v1/webhooks/${id}/deliveries/${deliveryId}`, {
      options,
    });
  }

  /** Pushes an event again. */
  replay(
    id: string,
    deliveryId: string,
    options?: RequestOptions,
  ): ApiPromise<Answer<"replayWebhookDelivery">> {
    return this.#api.json<"replayWebhookDelivery">(
      "POST",
      path`/v1/webhooks/${id}/deliveries/${deliveryId}/replay`,
      { options },
    );
  }

  /** Pushes a sample event. */
  test(
    id: string,
    body: Body<"testWebhook"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"testWebhook">> {
    return this.#api.json<"testWebhook">("POST", path`/v1/webhooks/${id}/test`, { body, options });
  }

  /** Checks a request to an endpoint of yours and returns its event. Needs no API key: see also `verifyWebhook`. */
  readonly verify = verifyWebhook;
}
