import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** Typed values that contacts may have. */
export declare class ContactProperties {
    #private;
    constructor(api: Transport);
    /** Defines a property. */
    create(body: Body<"createContactProperty">, options?: RequestOptions): ApiPromise<Answer<"createContactProperty">>;
    /** Lists properties, newest first. */
    list(query?: Query<"listContactProperties">, options?: RequestOptions): List<Item<"listContactProperties">>;
    /** Returns a property. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getContactProperty">>;
    /** Changes what a template gets for a contact without a value. */
    update(id: string, body: Body<"updateContactProperty">, options?: RequestOptions): ApiPromise<Answer<"updateContactProperty">>;
    /** Deletes a property. Its values are removed within some minutes. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteContactProperty">>;
}
/** Kinds of mail that readers can leave or choose. */
export declare class Topics {
    #private;
    constructor(api: Transport);
    /** Creates a topic. */
    create(body: Body<"createTopic">, options?: RequestOptions): ApiPromise<Answer<"createTopic">>;
    /** Lists topics, newest first. */
    list(query?: Query<"listTopics">, options?: RequestOptions): List<Item<"listTopics">>;
    /** Returns a topic. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getTopic">>;
    /** Changes a topic. */
    update(id: string, body: Body<"updateTopic">, options?: RequestOptions): ApiPromise<Answer<"updateTopic">>;
    /** Deletes a topic and what contacts have chosen about it. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteTopic">>;
}
/** Filters of contacts with a name. */
export declare class Segments {
    #private;
    constructor(api: Transport);
    /** Creates a segment. */
    create(body: Body<"createSegment">, options?: RequestOptions): ApiPromise<Answer<"createSegment">>;
    /** Counts the contacts that pass a filter, and returns some of them. */
    count(body: Body<"countSegment">, options?: RequestOptions): ApiPromise<Answer<"countSegment">>;
    /** Lists segments, newest first. */
    list(query?: Query<"listSegments">, options?: RequestOptions): List<Item<"listSegments">>;
    /** Lists the contacts of a segment, newest first. */
    contacts(id: string, query?: Query<"listSegmentContacts">, options?: RequestOptions): List<Item<"listSegmentContacts">>;
    /** Returns a segment. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getSegment">>;
    /** Changes the name or the filter of a segment. */
    update(id: string, body: Body<"updateSegment">, options?: RequestOptions): ApiPromise<Answer<"updateSegment">>;
    /** Deletes a segment. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteSegment">>;
}
