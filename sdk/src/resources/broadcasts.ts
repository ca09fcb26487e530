import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** Letters to the contacts of a segment. */
export class Broadcasts {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Saves a draft. */
  create(body: Body<"createBroadcast">, options?: RequestOptions): ApiPromise<Answer<"createBroadcast">> {
    return this.#api.json<"createBroadcast">("POST", "/v1/broadcasts", { body, options });
  }

  /** Lists broadcasts, newest first. */
  list(query?: Query<"listBroadcasts">, options?: RequestOptions): List<Item<"listBroadcasts">> {
    return this.#api.list<"listBroadcasts">("/v1/broadcasts", { query, options });
  }

  /** Returns a broadcast with its counts. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getBroadcast">> {
    return this.#api.json<"getBroadcast">("GET", path`/v1/broadcasts/${id}`, { options });
  }

  /** Changes a draft. */
  update(
    id: string,
    body: Body<"updateBroadcast">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateBroadcast">> {
    return this.#api.json<"updateBroadcast">("PATCH", path`/v1/broadcasts/${id}`, { body, options });
  }

  /** Deletes a broadcast. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteBroadcast">> {
    return this.#api.json<"deleteBroadcast">("DELETE", path`/v1/broadcasts/${id}`, { options });
  }

  /** Sends a draft, now or at its time. */
  send(
    id: string,
    body: Body<"sendBroadcast"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"sendBroadcast">> {
    return this.#api.json<"sendBroadcast">("POST", path`/v1/broadcasts/${id}/send`, { body, options });
  }

  /** Says whether a broadcast would be sent, and what its contacts lack. */
  check(id: string, options?: RequestOptions): ApiPromise<Answer<"checkBroadcast">> {
    return this.#api.json<"checkBroadcast">("POST", path`/v1/broadcasts/${id}/check`, { options });
  }

  /** Asks each link of a broadcast whether it works. */
  checkLinks(id: string, options?: RequestOptions): ApiPromise<Answer<"checkBroadcastLinks">> {
    return this.#api.json<"checkBroadcastLinks">("POST", path`/v1/broadcasts/${id}/check-links`, { options });
  }

  /** Sends a test to some addresses. */
  test(
    id: string,
    body: Body<"testBroadcast">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"testBroadcast">> {
    return this.#api.json<"testBroadcast">("POST", path`/v1/broadcasts/${id}/test`, { body, options });
  }

  /** Lists the recipients of a broadcast with the states of their messages, the last first. */
  recipients(
    id: string,
    query?: Query<"listBroadcastRecipients">,
    options?: RequestOptions,
  ): List<Item<"listBroadcastRecipients">> {
    return this.#api.list<"listBroadcastRecipients">(path`/v1/broadcasts/${id}/recipients`, {
      query,
      options,
    });
  }

  /** Returns the rates of a broadcast, and its figures over time. */
  results(
    id: string,
    query?: Query<"getBroadcastResults">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"getBroadcastResults">> {
    return this.#api.json<"getBroadcastResults">("GET", path`/v1/broadcasts/${id}/results`, {
      query,
      options,
    });
  }

  /** Pauses a broadcast. */
  pause(id: string, options?: RequestOptions): ApiPromise<Answer<"pauseBroadcast">> {
    return this.#api.json<"pauseBroadcast">("POST", path`/v1/broadcasts/${id}/pause`, { options });
  }

  /** Resumes a paused broadcast. */
  resume(id: string, options?: RequestOptions): ApiPromise<Answer<"resumeBroadcast">> {
    return this.#api.json<"resumeBroadcast">("POST", path`/v1/broadcasts/${id}/resume`, { options });
  }

  /** Cancels a broadcast. */
  cancel(id: string, options?: RequestOptions): ApiPromise<Answer<"cancelBroadcast">> {
    return this.#api.json<"cancelBroadcast">("POST", path`/v1/broadcasts/${id}/cancel`, { options });
  }
}
