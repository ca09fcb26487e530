import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** Letters to the contacts of a segment. */
export declare class Broadcasts {
    #private;
    constructor(api: Transport);
    /** Saves a draft. */
    create(body: Body<"createBroadcast">, options?: RequestOptions): ApiPromise<Answer<"createBroadcast">>;
    /** Lists broadcasts, newest first. */
    list(query?: Query<"listBroadcasts">, options?: RequestOptions): List<Item<"listBroadcasts">>;
    /** Returns a broadcast with its counts. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getBroadcast">>;
    /** Changes a draft. */
    update(id: string, body: Body<"updateBroadcast">, options?: RequestOptions): ApiPromise<Answer<"updateBroadcast">>;
    /** Deletes a broadcast. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteBroadcast">>;
    /** Sends a draft, now or at its time. */
    send(id: string, body?: Body<"sendBroadcast">, options?: RequestOptions): ApiPromise<Answer<"sendBroadcast">>;
    /** Says whether a broadcast would be sent, and what its contacts lack. */
    check(id: string, options?: RequestOptions): ApiPromise<Answer<"checkBroadcast">>;
    /** Asks each link of a broadcast whether it works. */
    checkLinks(id: string, options?: RequestOptions): ApiPromise<Answer<"checkBroadcastLinks">>;
    /** Sends a test to some addresses. */
    test(id: string, body: Body<"testBroadcast">, options?: RequestOptions): ApiPromise<Answer<"testBroadcast">>;
    /** Lists the recipients of a broadcast with the states of their messages, the last first. */
    recipients(id: string, query?: Query<"listBroadcastRecipients">, options?: RequestOptions): List<Item<"listBroadcastRecipients">>;
    /** Returns the rates of a broadcast, and its figures over time. */
    results(id: string, query?: Query<"getBroadcastResults">, options?: RequestOptions): ApiPromise<Answer<"getBroadcastResults">>;
    /** Pauses a broadcast. */
    pause(id: string, options?: RequestOptions): ApiPromise<Answer<"pauseBroadcast">>;
    /** Resumes a paused broadcast. */
    resume(id: string, options?: RequestOptions): ApiPromise<Answer<"resumeBroadcast">>;
    /** Cancels a broadcast. */
    cancel(id: string, options?: RequestOptions): ApiPromise<Answer<"cancelBroadcast">>;
}
