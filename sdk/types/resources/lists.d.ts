import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, ImportFile, Item, Query, RequestOptions } from "../types.ts";
/** The answers of an import, and of its preview. */
type BegunImport = Exclude<Answer<"importContacts">, {
    rows: number;
}>;
type ImportPreview = Extract<Answer<"importContacts">, {
    rows: number;
}>;
/** Recipients with a subscription. */
export declare class Contacts {
    #private;
    constructor(api: Transport);
    /** Makes a contact. */
    create(body: Body<"createContact">, options?: RequestOptions): ApiPromise<Answer<"createContact">>;
    /** Creates or updates up to 100 contacts. Each result has an id and says what happened, or has an error. */
    saveBatch(body: Body<"saveContactBatch">, options?: RequestOptions): ApiPromise<Answer<"saveContactBatch">>;
    /** Imports contacts from a file. A large file needs a longer `timeoutMs`. With `preview` it says what would happen. */
    import(file: ImportFile, query: {
        preview: "1";
    }, options?: RequestOptions): ApiPromise<ImportPreview>;
    import(file: ImportFile, query?: {
        preview?: never;
    }, options?: RequestOptions): ApiPromise<BegunImport>;
    /** Lists contacts, newest first. */
    list(query?: Query<"listContacts">, options?: RequestOptions): List<Item<"listContacts">>;
    /** Returns a contact. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getContact">>;
    /** Changes a contact. */
    update(id: string, body: Body<"updateContact">, options?: RequestOptions): ApiPromise<Answer<"updateContact">>;
    /** Deletes a contact. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteContact">>;
    /** Unsubscribes a contact. With `messageId` that message gets the event `unsubscribed`. */
    unsubscribe(id: string, body?: Body<"unsubscribeContact">, options?: RequestOptions): ApiPromise<Answer<"unsubscribeContact">>;
    /** Subscribes a contact again. */
    resubscribe(id: string, options?: RequestOptions): ApiPromise<Answer<"resubscribeContact">>;
}
/** Addresses that the project does not send to. */
export declare class Suppressions {
    #private;
    constructor(api: Transport);
    /** Suppresses an address. */
    add(body: Body<"addSuppression">, options?: RequestOptions): ApiPromise<Answer<"addSuppression">>;
    /** Suppresses up to 100 addresses. Each result has an id, or an error. */
    addBatch(body: Body<"addSuppressionBatch">, options?: RequestOptions): ApiPromise<Answer<"addSuppressionBatch">>;
    /** Imports suppressed addresses from a file. `reason` is for rows that have none. With `preview` it says what would happen. */
    import(file: ImportFile, query: Query<"importSuppressions"> & {
        preview: "1";
    }, options?: RequestOptions): ApiPromise<ImportPreview>;
    import(file: ImportFile, query?: Query<"importSuppressions"> & {
        preview?: never;
    }, options?: RequestOptions): ApiPromise<BegunImport>;
    /** Lists suppressed addresses, newest first. */
    list(query?: Query<"listSuppressions">, options?: RequestOptions): List<Item<"listSuppressions">>;
    /** Allows an address again. */
    remove(query: Query<"removeSuppression">, options?: RequestOptions): ApiPromise<Answer<"removeSuppression">>;
}
/** Imports of files with contacts or suppressed addresses. They are kept for 7 days. */
export declare class Imports {
    #private;
    constructor(api: Transport);
    /** Returns an import: whether it is done, and the numbers of its rows. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getImport">>;
    /** Lists what became of each row, in the order of the file. */
    rows(id: string, query?: Query<"listImportRows">, options?: RequestOptions): List<Item<"listImportRows">>;
}
/** Messages with placeholders. A template is named by its id or slug. */
export declare class Templates {
    #private;
    constructor(api: Transport);
    /** Saves a template. */
    create(body: Body<"createTemplate">, options?: RequestOptions): ApiPromise<Answer<"createTemplate">>;
    /** Lists templates, newest first. */
    list(query?: Query<"listTemplates">, options?: RequestOptions): List<Item<"listTemplates">>;
    /** Returns a template. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getTemplate">>;
    /** Changes a template. */
    update(id: string, body: Body<"updateTemplate">, options?: RequestOptions): ApiPromise<Answer<"updateTemplate">>;
    /** Deletes a template. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteTemplate">>;
    /** Renders a saved template without sending it. */
    render(id: string, body?: Body<"renderTemplate">, options?: RequestOptions): ApiPromise<Answer<"renderTemplate">>;
    /** Renders a draft without saving it. */
    preview(body: Body<"previewTemplate">, options?: RequestOptions): ApiPromise<Answer<"previewTemplate">>;
}
export {};
