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

  /** Changes a domain's routes, who holds its zone, or who moves its DMARC policy. */
  update(
    id: string,
    body: Body<"updateDomain">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateDomain">> {
    return this.#api.json<"updateDomain">("PATCH", path`/v1/domains/${id}`, { body, options });
  }

  /** Lists what receivers report about a domain by DMARC or TLS reports, the latest first. */
  reports(
    id: string,
    query?: Query<"listDomainReports">,
    options?: RequestOptions,
  ): List<Item<"listDomainReports">> {
    return this.#api.list<"listDomainReports">(path`/v1/domains/${id}/reports`, { query, options });
  }

  /** Returns which DMARC policy the reports show to be safe for a domain. */
  policyAdvice(id: string, options?: RequestOptions): ApiPromise<Answer<"getPolicyAdvice">> {
    return this.#api.json<"getPolicyAdvice">("GET", path`/v1/domains/${id}/policy-advice`, { options });
  }

  /** Lists your own records of a delegated domain, newest first. */
  records(
    id: string,
    query?: Query<"listDomainRecords">,
    options?: RequestOptions,
  ): List<Item<"listDomainRecords">> {
    return this.#api.list<"listDomainRecords">(path`/v1/domains/${id}/records`, { query, options });
  }

  /** Adds a record to a delegated domain. */
  addRecord(
    id: string,
    body: Body<"createDomainRecord">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"createDomainRecord">> {
    return this.#api.json<"createDomainRecord">("POST", path`/v1/domains/${id}/records`, { body, options });
  }

  /** Deletes one of your records of a domain. */
  deleteRecord(
    id: string,
    recordId: string,
    options?: RequestOptions,
  ): ApiPromise<Answer<"deleteDomainRecord">> {
    return this.#api.json<"deleteDomainRecord">("DELETE", path`/v1/domains/${id}/records/${recordId}`, {
      options,
    });
  }

  /** Deletes a domain without inboxes. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteDomain">> {
    return this.#api.json<"deleteDomain">("DELETE", path`/v1/domains/${id}`, { options });
  }

  /** Checks the DNS records of a domain now. */
  verify(id: string, options?: RequestOptions): ApiPromise<Answer<"verifyDomain">> {
    return this.#api.json<"verifyDomain">("POST", path`/v1/domains/${id}/verify`, { options });
  }

  /** Makes new DKIM keys for a domain, or changes to other algorithms. */
  rotateDkim(
    id: string,
    body: Body<"rotateDomainDkim"> = {},
    options?: RequestOptions,
  ): ApiPromise<Answer<"rotateDomainDkim">> {
    return this.#api.json<"rotateDomainDkim">("POST", path`/v1/domains/${id}/rotate-dkim`, { body, options });
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
