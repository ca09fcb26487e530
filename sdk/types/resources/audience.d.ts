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
