import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** Addresses that receive mail. */
export declare class Inboxes {
    #private;
    constructor(api: Transport);
    /** Makes an inbox. */
    create(body: Body<"createInbox">, options?: RequestOptions): ApiPromise<Answer<"createInbox">>;
    /** Lists inboxes, newest first. */
    list(query?: Query<"listInboxes">, options?: RequestOptions): List<Item<"listInboxes">>;
    /** Returns an inbox. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getInbox">>;
    /** Changes an inbox. */
    update(id: string, body: Body<"updateInbox">, options?: RequestOptions): ApiPromise<Answer<"updateInbox">>;
    /** Deletes an inbox that never received mail. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteInbox">>;
    /** Lists the threads of an inbox, most recently active first. */
    threads(id: string, query?: Query<"listInboxThreads">, options?: RequestOptions): List<Item<"listInboxThreads">>;
}
/** Senders that all inboxes of a project take or refuse, and those of one inbox. */
export declare class ListedSenders {
    #private;
    constructor(api: Transport);
    /** Allows or blocks a sender for all inboxes of the project. */
    create(body: Body<"createProjectSender">, options?: RequestOptions): ApiPromise<Answer<"createProjectSender">>;
    /** Lists the senders that all inboxes of the project take or refuse. */
    list(query?: Query<"listProjectSenders">, options?: RequestOptions): List<Item<"listProjectSenders">>;
    /** Takes a sender off the project's list. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteProjectSender">>;
    /** Allows or blocks a sender for one inbox. */
    createForInbox(inboxId: string, body: Body<"createInboxSender">, options?: RequestOptions): ApiPromise<Answer<"createInboxSender">>;
    /** Lists the senders that an inbox takes or refuses. */
    listForInbox(inboxId: string, query?: Query<"listInboxSenders">, options?: RequestOptions): List<Item<"listInboxSenders">>;
    /** Takes a sender off the list of an inbox. */
    deleteForInbox(inboxId: string, id: string, options?: RequestOptions): ApiPromise<Answer<"deleteInboxSender">>;
}
/** Rules for mail that arrives. */
export declare class Rules {
    #private;
    constructor(api: Transport);
    /** Creates a rule. */
    create(body: Body<"createRule">, options?: RequestOptions): ApiPromise<Answer<"createRule">>;
    /** Lists rules in the order in which they apply. */
    list(query?: Query<"listRules">, options?: RequestOptions): List<Item<"listRules">>;
    /** Returns a rule. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getRule">>;
    /** Changes a rule, its place, or turns it off. */
    update(id: string, body: Body<"updateRule">, options?: RequestOptions): ApiPromise<Answer<"updateRule">>;
    /** Deletes a rule. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteRule">>;
    /** Shows what the rules would do to a received message, and why. */
    try(body: Body<"tryRules">, options?: RequestOptions): ApiPromise<Answer<"tryRules">>;
}
/** Addresses that rules may forward to. */
export declare class ForwardAddresses {
    #private;
    constructor(api: Transport);
    /** Sends the owner of an address a link that confirms that mail may be forwarded there. */
    create(body: Body<"createForwardAddress">, options?: RequestOptions): ApiPromise<Answer<"createForwardAddress">>;
    /** Lists the addresses, newest first, with those that are not confirmed yet. */
    list(query?: Query<"listForwardAddresses">, options?: RequestOptions): List<Item<"listForwardAddresses">>;
    /** Returns an address, with whether it is confirmed. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getForwardAddress">>;
    /** Removes an address: nothing more is forwarded there. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteForwardAddress">>;
}
/** Conversations of an inbox. */
export declare class Threads {
    #private;
    constructor(api: Transport);
    /** Lists the threads of all inboxes, most recently active first. */
    list(query?: Query<"listThreads">, options?: RequestOptions): List<Item<"listThreads">>;
    /** Returns the labels in use, and the members whom threads can be assigned to. */
    mailbox(options?: RequestOptions): ApiPromise<Answer<"getMailbox">>;
    /** Returns a thread with its last messages, oldest first, and its notes. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getThread">>;
    /** Deletes a thread with all of its messages. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteThread">>;
    /** Marks, labels, assigns or moves a thread. */
    update(id: string, body: Body<"updateThread">, options?: RequestOptions): ApiPromise<Answer<"updateThread">>;
    /** Lists the messages of a thread, newest first. */
    messages(id: string, query?: Query<"listThreadMessages">, options?: RequestOptions): List<Item<"listThreadMessages">>;
    /** Replies to a message of a thread. */
    reply(id: string, body: Body<"replyToThread">, options?: RequestOptions): ApiPromise<Answer<"replyToThread">>;
    /** Adds an internal note, which never leaves by mail. */
    addNote(id: string, body: Body<"addNote">, options?: RequestOptions): ApiPromise<Answer<"addNote">>;
    /** Deletes an internal note. */
    deleteNote(id: string, noteId: string, options?: RequestOptions): ApiPromise<Answer<"deleteNote">>;
}
/** Messages that a person may still change and send. */
export declare class Drafts {
    #private;
    constructor(api: Transport);
    /** Saves a draft, which a person can read and send. */
    create(body: Body<"createDraft">, options?: RequestOptions): ApiPromise<Answer<"createDraft">>;
    /** Lists drafts, newest first. */
    list(query?: Query<"listDrafts">, options?: RequestOptions): List<Item<"listDrafts">>;
    /** Returns a draft with all of its fields. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getDraft">>;
    /** Replaces the fields of a draft. */
    replace(id: string, body: Body<"replaceDraft">, options?: RequestOptions): ApiPromise<Answer<"replaceDraft">>;
    /** Deletes a draft. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteDraft">>;
    /** Sends a draft once. With `version`, only if it has not changed since. */
    send(id: string, body?: Body<"sendDraft">, options?: RequestOptions): ApiPromise<Answer<"sendDraft">>;
}
/** Received mail in tests. */
export declare class Inbound {
    #private;
    constructor(api: Transport);
    /** Receives a made-up message, with webhooks. */
    simulate(body: Body<"simulateInbound">, options?: RequestOptions): ApiPromise<Answer<"simulateInbound">>;
}
