import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** Typed values that contacts may have. */
export class ContactProperties {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Defines a property. */
  create(
    body: Body<"createContactProperty">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"createContactProperty">> {
    return this.#api.json<"createContactProperty">("POST", "/v1/contact-properties", { body, options });
  }

  /** Lists properties, newest first. */
  list(
    query?: Query<"listContactProperties">,
    options?: RequestOptions,
  ): List<Item<"listContactProperties">> {
    return this.#api.list<"listContactProperties">("/v1/contact-properties", { query, options });
  }

  /** Returns a property. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getContactProperty">> {
    return this.#api.json<"getContactProperty">("GET", path`/v1/contact-properties/${id}`, { options });
  }

  /** Changes what a template gets for a contact without a value. */
  update(
    id: string,
    body: Body<"updateContactProperty">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateContactProperty">> {
    return this.#api.json<"updateContactProperty">("PATCH", path`/v1/contact-properties/${id}`, {
      body,
      options,
    });
  }

  /** Deletes a property. Its values are removed within some minutes. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteContactProperty">> {
    return this.#api.json<"deleteContactProperty">("DELETE", path`/v1/contact-properties/${id}`, { options });
  }
}

/** Kinds of mail that readers can leave or choose. */
export class Topics {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Creates a topic. */
  create(body: Body<"createTopic">, options?: RequestOptions): ApiPromise<Answer<"createTopic">> {
    return this.#api.json<"createTopic">("POST", "/v1/topics", { body, options });
  }

  /** Lists topics, newest first. */
  list(query?: Query<"listTopics">, options?: RequestOptions): List<Item<"listTopics">> {
    return this.#api.list<"listTopics">("/v1/topics", { query, options });
  }

  /** Returns a topic. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getTopic">> {
    return this.#api.json<"getTopic">("GET", path`/v1/topics/${id}`, { options });
  }

  /** Changes a topic. */
  update(id: string, body: Body<"updateTopic">, options?: RequestOptions): ApiPromise<Answer<"updateTopic">> {
    return this.#api.json<"updateTopic">("PATCH", path`/v1/topics/${id}`, { body, options });
  }

  /** Deletes a topic and what contacts have chosen about it. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteTopic">> {
    return this.#api.json<"deleteTopic">("DELETE", path`/v1/topics/${id}`, { options });
  }
}

/** Filters of contacts with a name. */
export class Segments {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Creates a segment. */
  create(body: Body<"createSegment">, options?: RequestOptions): ApiPromise<Answer<"createSegment">> {
    return this.#api.json<"createSegment">("POST", "/v1/segments", { body, options });
  }

  /** Counts the contacts that pass a filter, and returns some of them. */
  count(body: Body<"countSegment">, options?: RequestOptions): ApiPromise<Answer<"countSegment">> {
    return this.#api.json<"countSegment">("POST", "/v1/segments/count", { body, options });
  }

  /** Lists segments, newest first. */
  list(query?: Query<"listSegments">, options?: RequestOptions): List<Item<"listSegments">> {
    return this.#api.list<"listSegments">("/v1/segments", { query, options });
  }

  /** Lists the contacts of a segment, newest first. */
  contacts(
    id: string,
    query?: Query<"listSegmentContacts">,
    options?: RequestOptions,
  ): List<Item<"listSegmentContacts">> {
    return this.#api.list<"listSegmentContacts">(path`/v1/segments/${id}/contacts`, { query, options });
  }

  /** Returns a segment. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getSegment">> {
    return this.#api.json<"getSegment">("GET", path`/v1/segments/${id}`, { options });
  }

  /** Changes the name or the filter of a segment. */
  update(
    id: string,
    body: Body<"updateSegment">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateSegment">> {
    return this.#api.json<"updateSegment">("PATCH", path`/v1/segments/${id}`, { body, options });
  }

  /** Deletes a segment. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteSegment">> {
    return this.#api.json<"deleteSegment">("DELETE", path`/v1/segments/${id}`, { options });
  }
}
