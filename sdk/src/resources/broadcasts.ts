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
  send(id: string, options?: RequestOptions): ApiPromise<Answer<"sendBroadcast">> {
    return this.#api.json<"sendBroadcast">("POST", path`/v1/broadcasts/${id}/send`, { options });
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
