import type { ApiPromise, List } from "../promises.ts";
import { path, type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";

/** API keys. */
export class ApiKeys {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes a key. Only this answer has its secret. */
  create(body: Body<"createApiKey">, options?: RequestOptions): ApiPromise<Answer<"createApiKey">> {
    return this.#api.json<"createApiKey">("POST", "/v1/api-keys", { body, options });
  }

  /** Lists keys, newest first. */
  list(query?: Query<"listApiKeys">, options?: RequestOptions): List<Item<"listApiKeys">> {
    return this.#api.list<"listApiKeys">("/v1/api-keys", { query, options });
  }

  /** Renames a key. */
  rename(
    id: string,
    body: Body<"renameApiKey">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"renameApiKey">> {
    return this.#api.json<"renameApiKey">("PATCH", path`/v1/api-keys/${id}`, { body, options });
  }

  /** Revokes a key at once and for good. */
  revoke(id: string, options?: RequestOptions): ApiPromise<Answer<"revokeApiKey">> {
    return this.#api.json<"revokeApiKey">("DELETE", path`/v1/api-keys/${id}`, { options });
  }
}

/** Erasures of addresses. */
export class Erasures {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Erases an address from the project, or with an account-wide key from all projects. */
  create(body: Body<"createErasure">, options?: RequestOptions): ApiPromise<Answer<"createErasure">> {
    return this.#api.json<"createErasure">("POST", "/v1/erasures", { body, options });
  }

  /** Returns an erasure and what it has removed so far. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getErasure">> {
    return this.#api.json<"getErasure">("GET", path`/v1/erasures/${id}`, { options });
  }
}

/** Exports of all that is stored about an address. */
export class Exports {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Returns all that is stored about an address, one JSON object per line. */
  get(query: Query<"exportAddress">, options?: RequestOptions): ApiPromise<Uint8Array> {
    return this.#api.bytes<"exportAddress">("/v1/exports", { query, options });
  }
}

/** Lanes of outgoing mail: the way to each provider. Needs an account-wide key. */
export class Lanes {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Lists the lanes that are not steady, and those of providers with mail today. */
  list(options?: RequestOptions): ApiPromise<Answer<"listLanes">> {
    return this.#api.json<"listLanes">("GET", "/v1/lanes", { options });
  }

  /** Opens a lane that rests or is blocked. */
  open(name: string, options?: RequestOptions): ApiPromise<Answer<"openLane">> {
    return this.#api.json<"openLane">("POST", path`/v1/lanes/${name}/open`, { options });
  }
}

/** The audit trail: who changed what. Needs an account-wide key. */
export class AuditLog {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Lists changes, newest first. */
  list(query?: Query<"listAuditLog">, options?: RequestOptions): List<Item<"listAuditLog">> {
    return this.#api.list<"listAuditLog">("/v1/audit-log", { query, options });
  }
}

/** Notices of the service: facts that need someone. */
export class Notices {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Lists notices, newest first. */
  list(query?: Query<"listNotices">, options?: RequestOptions): List<Item<"listNotices">> {
    return this.#api.list<"listNotices">("/v1/notices", { query, options });
  }

  /** Marks a notice as seen, or not. */
  update(
    id: string,
    body: Body<"updateNotice">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateNotice">> {
    return this.#api.json<"updateNotice">("PATCH", path`/v1/notices/${id}`, { body, options });
  }
}

/** The people who can sign in to the dashboard. Needs an account-wide key. */
export class Members {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Invites a person, who gets a link by mail. */
  create(body: Body<"createMember">, options?: RequestOptions): ApiPromise<Answer<"createMember">> {
    return this.#api.json<"createMember">("POST", "/v1/members", { body, options });
  }

  /** Lists members, newest first. */
  list(query?: Query<"listMembers">, options?: RequestOptions): List<Item<"listMembers">> {
    return this.#api.list<"listMembers">("/v1/members", { query, options });
  }

  /** Returns a member. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getMember">> {
    return this.#api.json<"getMember">("GET", path`/v1/members/${id}`, { options });
  }

  /** Changes a member's role, projects or status. */
  update(
    id: string,
    body: Body<"updateMember">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateMember">> {
    return this.#api.json<"updateMember">("PATCH", path`/v1/members/${id}`, { body, options });
  }

  /** Removes a member and ends all sessions. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteMember">> {
    return this.#api.json<"deleteMember">("DELETE", path`/v1/members/${id}`, { options });
  }

  /** Lists a member's sessions, newest first. */
  sessions(
    id: string,
    query?: Query<"listMemberSessions">,
    options?: RequestOptions,
  ): List<Item<"listMemberSessions">> {
    return this.#api.list<"listMemberSessions">(path`/v1/members/${id}/sessions`, { query, options });
  }

  /** Ends all sessions of a member. */
  endSessions(id: string, options?: RequestOptions): ApiPromise<Answer<"endMemberSessions">> {
    return this.#api.json<"endMemberSessions">("DELETE", path`/v1/members/${id}/sessions`, { options });
  }

  /** Ends one session of a member. */
  endSession(
    id: string,
    sessionId: string,
    options?: RequestOptions,
  ): ApiPromise<Answer<"endMemberSession">> {
    const at = path`/v1/members/${id}/sessions/${sessionId}`;
    return this.#api.json<"endMemberSession">("DELETE", at, { options });
  }
}

/** Projects. The API calls them senders. Needs an account-wide key. */
export class Senders {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes a project. */
  create(body: Body<"createSender">, options?: RequestOptions): ApiPromise<Answer<"createSender">> {
    return this.#api.json<"createSender">("POST", "/v1/senders", { body, options });
  }

  /** Lists projects, newest first. */
  list(query?: Query<"listSenders">, options?: RequestOptions): List<Item<"listSenders">> {
    return this.#api.list<"listSenders">("/v1/senders", { query, options });
  }

  /** Returns a project. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getSender">> {
    return this.#api.json<"getSender">("GET", path`/v1/senders/${id}`, { options });
  }

  /** Deletes a project with everything in it. `confirm` is its `externalId`. */
  delete(
    id: string,
    query: Query<"deleteSender">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"deleteSender">> {
    return this.#api.json<"deleteSender">("DELETE", path`/v1/senders/${id}`, { query, options });
  }

  /** Changes a project. */
  update(
    id: string,
    body: Body<"updateSender">,
    options?: RequestOptions,
  ): ApiPromise<Answer<"updateSender">> {
    return this.#api.json<"updateSender">("PATCH", path`/v1/senders/${id}`, { body, options });
  }
}

/** Ways out of an account: relays, and pools of own addresses. Needs an account-wide key. */
export class Routes {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Makes a route. */
  create(body: Body<"createRoute">, options?: RequestOptions): ApiPromise<Answer<"createRoute">> {
    return this.#api.json<"createRoute">("POST", "/v1/routes", { body, options });
  }

  /** Lists routes, newest first. The last one is `default`, which the settings make. */
  list(query?: Query<"listRoutes">, options?: RequestOptions): List<Item<"listRoutes">> {
    return this.#api.list<"listRoutes">("/v1/routes", { query, options });
  }

  /** Returns a route, without the login of its relay. */
  get(id: string, options?: RequestOptions): ApiPromise<Answer<"getRoute">> {
    return this.#api.json<"getRoute">("GET", path`/v1/routes/${id}`, { options });
  }

  /** Changes a route. */
  update(id: string, body: Body<"updateRoute">, options?: RequestOptions): ApiPromise<Answer<"updateRoute">> {
    return this.#api.json<"updateRoute">("PATCH", path`/v1/routes/${id}`, { body, options });
  }

  /** Deletes a route that no project, domain or warm-up names. */
  delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteRoute">> {
    return this.#api.json<"deleteRoute">("DELETE", path`/v1/routes/${id}`, { options });
  }
}

/** The account, its limits and figures. */
export class Account {
  readonly #api: Transport;
  constructor(api: Transport) {
    this.#api = api;
  }

  /** Returns the key of the client, its project and its limits. */
  me(options?: RequestOptions): ApiPromise<Answer<"getMe">> {
    return this.#api.json<"getMe">("GET", "/v1/me", { options });
  }

  /** Returns the address of the owner, and who gets notices. Needs an account-wide key. */
  get(options?: RequestOptions): ApiPromise<Answer<"getAccount">> {
    return this.#api.json<"getAccount">("GET", "/v1/account", { options });
  }

  /** Changes the address of the owner, and who gets notices. */
  update(body: Body<"updateAccount">, options?: RequestOptions): ApiPromise<Answer<"updateAccount">> {
    return this.#api.json<"updateAccount">("PATCH", "/v1/account", { body, options });
  }

  /** Returns what is left of the daily volume and the quotas. */
  quota(options?: RequestOptions): ApiPromise<Answer<"getQuota">> {
    return this.#api.json<"getQuota">("GET", "/v1/quota", { options });
  }

  /** Returns figures of sent and received messages. */
  stats(query?: Query<"getStats">, options?: RequestOptions): ApiPromise<Answer<"getStats">> {
    return this.#api.json<"getStats">("GET", "/v1/stats", { query, options });
  }

  /** Lists the settings of the service, secrets masked. Needs an account-wide key. */
  settings(options?: RequestOptions): List<Item<"listSettings">> {
    return this.#api.list<"listSettings">("/v1/settings", { options });
  }

  /** Checks the health of the installation. Needs an account-wide key. */
  health(options?: RequestOptions): ApiPromise<Answer<"getHealth">> {
    return this.#api.json<"getHealth">("GET", "/v1/health", { options });
  }
}
