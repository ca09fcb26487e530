import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** Addresses that receive mail. */
export class Inboxes {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes an inbox. */
  create(body: Body<"createInbox">, options?: RequestOptions): ApiPromise<Answer<"createInbox">> {
    return this.#api.json<"createInbox">("POST", "/v1/inboxes", { body, options });
  }

  /** Lists inboxes, newest first. */
  list(query?: Query<"listInboxes">, options?: RequestOptions): List<Item<"listInboxes">> {
    return this.#api.list<"listInboxes">("/v1/inboxes", { query, options });
  }

  /** Returns an inbox. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getInbox">> {
    return this.#api.json<"getInbox">("GET", path`/v1/inboxes/${id}`, { options });
  }

  /** Changes an inbox. */
  update(id: string, body: Body<"updateInbox">, options?: RequestOptions): ApiPromise<Answer<"updateInbox">> {
    return this.#api.json<"updateInbox">("PATCH", path`/v1/inboxes/${id}`, { body, options });
  }

  /** Deletes an inbox that never received mail. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteInbox">> {
    return this.#api.json<"deleteInbox">("DELETE", path`/v1/inboxes/${id}`, { options });
  }

  /** Lists the threads of an inbox, most recently active first. */
  threads(
    id: string,
    query?: Query<"listInboxThreads">,
    options?: RequestOptions,
  ): List<Item<"listInboxThreads">> {
    return this.#api.list<"listInboxThreads">(path`/v1/inboxes/${id}/threads`, { query, options });
  }
}

/** Senders that all inboxes of a project take or refuse, and those of one inbox. */
export class ListedSenders {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Allows or blocks a sender for all inboxes of the project. */
  create(
    body: Body<"createProjectSender">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"createProjectSender">> {
    return this.#api.json<"createProjectSender">("POST", "/v1/inbound/senders", { body, options });
  }

  /** Lists the senders that all inboxes of the project take or refuse. */
  list(query?: Query<"listProjectSenders">, options?: RequestOptions): List<Item<"listProjectSenders">> {
    return this.#api.list<"listProjectSenders">("/v1/inbound/senders", { query, options });
  }

  /** Takes a sender off the project's list. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteProjectSender">> {
    return this.#api.json<"deleteProjectSender">("DELETE", path`/v1/inbound/senders/${id}`, { options });
  }

  /** Allows or blocks a sender for one inbox. */
  createForInbox(
    inboxId: string,
    body: Body<"createInboxSender">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"createInboxSender">> {
    return this.#api.json<"createInboxSender">("POST", path`/v1/inboxes/${inboxId}/senders`, {
      body,
      options,
    });
  }

  /** Lists the senders that an inbox takes or refuses. */
  listForInbox(
    inboxId: string,
    query?: Query<"listInboxSenders">,
    options?: RequestOptions,
  ): List<Item<"listInboxSenders">> {
    return this.#api.list<"listInboxSenders">(path`/v1/inboxes/${inboxId}/senders`, { query, options });
  }

  /** Takes a sender off the list of an inbox. */
  deleteForInbox(
    inboxId: string,
    id: string,
    options?: RequestOptions,
  ): ApiPromise<Answer<"deleteInboxSender">> {
    return this.#api.json<"deleteInboxSender">("DELETE", path`/v1/inboxes/${inboxId}/senders/${id}`, {
      options,
    });
  }
}

/** Rules for mail that arrives. */
export class Rules {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Creates a rule. */
  create(body: Body<"createRule">, options?: RequestOptions): ApiPromise<Answer<"createRule">> {
    return this.#api.json<"createRule">("POST", "/v1/rules", { body, options });
  }

  /** Lists rules in the order in which they apply. */
  list(query?: Query<"listRules">, options?: RequestOptions): List<Item<"listRules">> {
    return this.#api.list<"listRules">("/v1/rules", { query, options });
  }

  /** Returns a rule. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getRule">> {
    return this.#api.json<"getRule">("GET", path`/v1/rules/${id}`, { options });
  }

  /** Changes a rule, its place, or turns it off. */
  update(id: string, body: Body<"updateRule">, options?: RequestOptions): ApiPromise<Answer<"updateRule">> {
    return this.#api.json<"updateRule">("PATCH", path`/v1/rules/${id}`, { body, options });
  }

  /** Deletes a rule. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteRule">> {
    return this.#api.json<"deleteRule">("DELETE", path`/v1/rules/${id}`, { options });
  }

  /** Shows what the rules would do to a received message, and why. */
  try(body: Body<"tryRules">, options?: RequestOptions): ApiPromise<Answer<"tryRules">> {
    return this.#api.json<"tryRules">("POST", "/v1/rules/try", { body, options });
  }
}

/** Addresses that rules may forward to. */
export class ForwardAddresses {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Sends the owner of an address a link that confirms that mail may be forwarded there. */
  create(
    body: Body<"createForwardAddress">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"createForwardAddress">> {
    return this.#api.json<"createForwardAddress">("POST", "/v1/forward-addresses", { body, options });
  }

  /** Lists the addresses, newest first, with those that are not confirmed yet. */
  list(query?: Query<"listForwardAddresses">, options?: RequestOptions): List<Item<"listForwardAddresses">> {
    return this.#api.list<"listForwardAddresses">("/v1/forward-addresses", { query, options });
  }

  /** Returns an address, with whether it is confirmed. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getForwardAddress">> {
    return this.#api.json<"getForwardAddress">("GET", path`/v1/forward-addresses/${id}`, { options });
  }

  /** Removes an address: nothing more is forwarded there. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteForwardAddress">> {
    return this.#api.json<"deleteForwardAddress">("DELETE", path`/v1/forward-addresses/${id}`, { options });
  }
}

/** Conversations of an inbox. */
export class Threads {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Lists the threads of all inboxes, most recently active first. */
  list(query?: Query<"listThreads">, options?: RequestOptions): List<Item<"listThreads">> {
    return this.#api.list<"listThreads">("/v1/threads", { query, options });
  }

  /** Returns the labels in use, and the members whom threads can be assigned to. */
  mailbox(options?: RequestOptions): ApiPromise<Answer<"getMailbox">> {
    return this.#api.json<"getMailbox">("GET", "/v1/mailbox", { options });
  }

  /** Returns a thread with its last messages, oldest first, and its notes. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getThread">> {
    return this.#api.json<"getThread">("GET", path`/v1/threads/${id}`, { options });
  }

  /** Deletes a thread with all of its messages. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteThread">> {
    return this.#api.json<"deleteThread">("DELETE", path`/v1/threads/${id}`, { options });
  }

  /** Marks, labels, assigns or moves a thread. */
  update(
    id: string,
    body: Body<"updateThread">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateThread">> {
    return this.#api.json<"updateThread">("PATCH", path`/v1/threads/${id}`, { body, options });
  }

  /** Lists the messages of a thread, newest first. */
  messages(
    id: string,
    query?: Query<"listThreadMessages">,
    options?: RequestOptions,
  ): List<Item<"listThreadMessages">> {
    return this.#api.list<"listThreadMessages">(path`/v1/threads/${id}/messages`, { query, options });
  }

  /** Replies to a message of a thread. */
  reply(
    id: string,
    body: Body<"replyToThread">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"replyToThread">> {
    return this.#api.json<"replyToThread">("POST", path`/v1/threads/${id}/reply`, { body, options });
  }

  /** Adds an internal note, which never leaves by mail. */
  addNote(id: string, body: Body<"addNote">, options?: RequestOptions): ApiPromise<Answer<"addNote">> {
    return this.#api.json<"addNote">("POST", path`/v1/threads/${id}/notes`, { body, options });
  }

  /** Deletes an internal note. */
  deleteNote(id: string, noteId: string, options?: RequestOptions): ApiPromise<Answer<"deleteNote">> {
    return this.#api.json<"deleteNote">("DELETE", path`/v1/threads/${id}/notes/${noteId}`, { options });
  }
}

/** Messages that a person may still change and send. */
export class Drafts {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Saves a draft, which a person can read and send. */
  create(body: Body<"createDraft">, options?: RequestOptions): ApiPromise<Answer<"createDraft">> {
    return this.#api.json<"createDraft">("POST", "/v1/drafts", { body, options });
  }

  /** Lists drafts, newest first. */
  list(query?: Query<"listDrafts">, options?: RequestOptions): List<Item<"listDrafts">> {
    return this.#api.list<"listDrafts">("/v1/drafts", { query, options });
  }

  /** Returns a draft with all of its fields. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getDraft">> {
    return this.#api.json<"getDraft">("GET", path`/v1/drafts/${id}`, { options });
  }

  /** Replaces the fields of a draft. */
  replace(
    id: string,
    body: Body<"replaceDraft">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"replaceDraft">> {
    return this.#api.json<"replaceDraft">("PUT", path`/v1/drafts/${id}`, { body, options });
  }

  /** Deletes a draft. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteDraft">> {
    return this.#api.json<"deleteDraft">("DELETE", path`/v1/drafts/${id}`, { options });
  }

  /** Sends a draft once. With `version`, only if it has not changed since. */
  send(id: string, body: Body<"sendDraft"> = {}, options?: RequestOptions): ApiPromise<Answer<"sendDraft">> {
    return this.#api.json<"sendDraft">("POST", path`/v1/drafts/${id}/send`, { body, options });
  }
}

/** Received mail in tests. */
export class Inbound {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Receives a made-up message, with webhooks. */
  simulate(body: Body<"simulateInbound">, options?: RequestOptions): ApiPromise<Answer<"simulateInbound">> {
    return this.#api.json<"simulateInbound">("POST", "/v1/inbound/simulate", { body, options });
  }
}
