import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** Domains that send and receive. */
export class Domains {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Adds a domain. Publish its `records` in the DNS. */
  create(body: Body<"createDomain">, options?: RequestOptions): ApiPromise<Answer<"createDomain">> {
    return this.#api.json<"createDomain">("POST", "/v1/domains", { body, options });
  }

  /** Lists domains, newest first. */
  list(query?: Query<"listDomains">, options?: RequestOptions): List<Item<"listDomains">> {
    return this.#api.list<"listDomains">("/v1/domains", { query, options });
  }

  /** Returns a domain with the result of its last check. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getDomain">> {
    return this.#api.json<"getDomain">("GET", path`/v1/domains/${id}`, { options });
  }

  /** Deletes a domain without inboxes. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteDomain">> {
    return this.#api.json<"deleteDomain">("DELETE", path`/v1/domains/${id}`, { options });
  }

  /** Checks the DNS records of a domain now. */
  verify(id: string, options?: RequestOptions): ApiPromise<Answer<"verifyDomain">> {
    return this.#api.json<"verifyDomain">("POST", path`/v1/domains/${id}/verify`, { options });
  }

  /** Makes a new DKIM key for a domain. */
  rotateDkim(id: string, options?: RequestOptions): ApiPromise<Answer<"rotateDomainDkim">> {
    return this.#api.json<"rotateDomainDkim">("POST", path`/v1/domains/${id}/rotate-dkim`, { options });
  }

  /** Returns whether a domain receives mail. */
  receiving(id: string, options?: RequestOptions): ApiPromise<Answer<"getDomainReceiving">> {
    return this.#api.json<"getDomainReceiving">("GET", path`/v1/domains/${id}/receiving`, { options });
  }

  /** Turns receiving on or off. */
  setReceiving(
    id: string,
    body: Body<"setDomainReceiving">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"setDomainReceiving">> {
    return this.#api.json<"setDomainReceiving">("PATCH", path`/v1/domains/${id}/receiving`, {
      body,
      options,
    });
  }
}
