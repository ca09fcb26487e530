import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** API keys. */
export declare class ApiKeys {
    #private;
    constructor(api: Transport);
    /** Makes a key. Only this answer has its secret. */
    create(body: Body<"createApiKey">, options?: RequestOptions): ApiPromise<Answer<"createApiKey">>;
    /** Lists keys, newest first. */
    list(query?: Query<"listApiKeys">, options?: RequestOptions): List<Item<"listApiKeys">>;
    /** Renames a key. */
    rename(id: string, body: Body<"renameApiKey">, options?: RequestOptions): ApiPromise<Answer<"renameApiKey">>;
    /** Revokes a key at once and for good. */
    revoke(id: string, options?: RequestOptions): ApiPromise<Answer<"revokeApiKey">>;
}
/** Erasures of addresses. */
export declare class Erasures {
    #private;
    constructor(api: Transport);
    /** Erases an address from the project, or with an account-wide key from all projects. */
    create(body: Body<"createErasure">, options?: RequestOptions): ApiPromise<Answer<"createErasure">>;
    /** Returns an erasure and what it has removed so far. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getErasure">>;
}
/** Exports of all that is stored about an address. */
export declare class Exports {
    #private;
    constructor(api: Transport);
    /** Returns all that is stored about an address, one JSON object per line. */
    get(query: Query<"exportAddress">, options?: RequestOptions): ApiPromise<Uint8Array>;
}
/** Lanes of outgoing mail: the way to each provider. Needs an account-wide key. */
export declare class Lanes {
    #private;
    constructor(api: Transport);
    /** Lists the lanes that are not steady, and those of providers with mail today. */
    list(options?: RequestOptions): ApiPromise<Answer<"listLanes">>;
    /** Opens a lane that rests or is blocked. */
    open(name: string, options?: RequestOptions): ApiPromise<Answer<"openLane">>;
}
/** The audit trail: who changed what. Needs an account-wide key. */
export declare class AuditLog {
    #private;
    constructor(api: Transport);
    /** Lists changes, newest first. */
    list(query?: Query<"listAuditLog">, options?: RequestOptions): List<Item<"listAuditLog">>;
}
/** Notices of the service: facts that need someone. */
export declare class Notices {
    #private;
    constructor(api: Transport);
    /** Lists notices, newest first. */
    list(query?: Query<"listNotices">, options?: RequestOptions): List<Item<"listNotices">>;
    /** Marks a notice as seen, or not. */
    update(id: string, body: Body<"updateNotice">, options?: RequestOptions): ApiPromise<Answer<"updateNotice">>;
}
/** The people who can sign in to the dashboard. Needs an account-wide key. */
export declare class Members {
    #private;
    constructor(api: Transport);
    /** Invites a person, who gets a link by mail. */
    create(body: Body<"createMember">, options?: RequestOptions): ApiPromise<Answer<"createMember">>;
    /** Lists members, newest first. */
    list(query?: Query<"listMembers">, options?: RequestOptions): List<Item<"listMembers">>;
    /** Returns a member. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getMember">>;
    /** Changes a member's role, projects or status. */
    update(id: string, body: Body<"updateMember">, options?: RequestOptions): ApiPromise<Answer<"updateMember">>;
    /** Removes a member and ends all sessions. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteMember">>;
    /** Lists a member's sessions, newest first. */
    sessions(id: string, query?: Query<"listMemberSessions">, options?: RequestOptions): List<Item<"listMemberSessions">>;
    /** Ends all sessions of a member. */
    endSessions(id: string, options?: RequestOptions): ApiPromise<Answer<"endMemberSessions">>;
    /** Ends one session of a member. */
    endSession(id: string, sessionId: string, options?: RequestOptions): ApiPromise<Answer<"endMemberSession">>;
}
/** Projects. The API calls them senders. Needs an account-wide key. */
export declare class Senders {
    #private;
    constructor(api: Transport);
    /** Makes a project. */
    create(body: Body<"createSender">, options?: RequestOptions): ApiPromise<Answer<"createSender">>;
    /** Lists projects, newest first. */
    list(query?: Query<"listSenders">, options?: RequestOptions): List<Item<"listSenders">>;
    /** Returns a project. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getSender">>;
    /** Deletes a project with everything in it. `confirm` is its `externalId`. */
    delete(id: string, query: Query<"deleteSender">, options?: RequestOptions): ApiPromise<Answer<"deleteSender">>;
    /** Changes a project. */
    update(id: string, body: Body<"updateSender">, options?: RequestOptions): ApiPromise<Answer<"updateSender">>;
}
/** Ways out of an account: relays, and pools of own addresses. Needs an account-wide key. */
export declare class Routes {
    #private;
    constructor(api: Transport);
    /** Makes a route. */
    create(body: Body<"createRoute">, options?: RequestOptions): ApiPromise<Answer<"createRoute">>;
    /** Lists routes, newest first. The last one is `default`, which the settings make. */
    list(query?: Query<"listRoutes">, options?: RequestOptions): List<Item<"listRoutes">>;
    /** Returns a route, without the login of its relay. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getRoute">>;
    /** Changes a route. */
    update(id: string, body: Body<"updateRoute">, options?: RequestOptions): ApiPromise<Answer<"updateRoute">>;
    /** Deletes a route that no project, domain or warm-up names. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteRoute">>;
}
/** The account, its limits and figures. */
export declare class Account {
    #private;
    constructor(api: Transport);
    /** Returns the key of the client, its project and its limits. */
    me(options?: RequestOptions): ApiPromise<Answer<"getMe">>;
    /** Returns the address of the owner, and who gets notices. Needs an account-wide key. */
    get(options?: RequestOptions): ApiPromise<Answer<"getAccount">>;
    /** Changes the address of the owner, and who gets notices. */
    update(body: Body<"updateAccount">, options?: RequestOptions): ApiPromise<Answer<"updateAccount">>;
    /** Returns what is left of the daily volume and the quotas. */
    quota(options?: RequestOptions): ApiPromise<Answer<"getQuota">>;
    /** Returns figures of sent and received messages. */
    stats(query?: Query<"getStats">, options?: RequestOptions): ApiPromise<Answer<"getStats">>;
    /** Lists the settings of the service, secrets masked. Needs an account-wide key. */
    settings(options?: RequestOptions): List<Item<"listSettings">>;
    /** Checks the health of the installation. Needs an account-wide key. */
    health(options?: RequestOptions): ApiPromise<Answer<"getHealth">>;
}
