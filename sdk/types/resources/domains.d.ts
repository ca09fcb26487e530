import type { ApiPromise, List } from "../promises.ts";
import { type Transport } from "../transport.ts";
import type { Answer, Body, Item, Query, RequestOptions } from "../types.ts";
/** Domains that send and receive. */
export declare class Domains {
    #private;
    constructor(api: Transport);
    /** Adds a domain. Publish its `records` in the DNS. */
    create(body: Body<"createDomain">, options?: RequestOptions): ApiPromise<Answer<"createDomain">>;
    /** Lists domains, newest first. */
    list(query?: Query<"listDomains">, options?: RequestOptions): List<Item<"listDomains">>;
    /** Returns a domain with the result of its last check. */
    get(id: string, options?: RequestOptions): ApiPromise<Answer<"getDomain">>;
    /** Changes a domain's routes, who holds its zone, or who moves its DMARC policy. */
    update(id: string, body: Body<"updateDomain">, options?: RequestOptions): ApiPromise<Answer<"updateDomain">>;
    /** Lists what receivers report about a domain by DMARC or TLS reports, the latest first. */
    reports(id: string, query?: Query<"listDomainReports">, options?: RequestOptions): List<Item<"listDomainReports">>;
    /** Returns which DMARC policy the reports show to be safe for a domain. */
    policyAdvice(id: string, options?: RequestOptions): ApiPromise<Answer<"getPolicyAdvice">>;
    /** Lists your own records of a delegated domain, newest first. */
    records(id: string, query?: Query<"listDomainRecords">, options?: RequestOptions): List<Item<"listDomainRecords">>;
    /** Adds a record to a delegated domain. */
    addRecord(id: string, body: Body<"createDomainRecord">, options?: RequestOptions): ApiPromise<Answer<"createDomainRecord">>;
    /** Deletes one of your records of a domain. */
    deleteRecord(id: string, recordId: string, options?: RequestOptions): ApiPromise<Answer<"deleteDomainRecord">>;
    /** Deletes a domain without inboxes. */
    delete(id: string, options?: RequestOptions): ApiPromise<Answer<"deleteDomain">>;
    /** Checks the DNS records of a domain now. */
    verify(id: string, options?: RequestOptions): ApiPromise<Answer<"verifyDomain">>;
    /** Makes new DKIM keys for a domain, or changes to other algorithms. */
    rotateDkim(id: string, body?: Body<"rotateDomainDkim">, options?: RequestOptions): ApiPromise<Answer<"rotateDomainDkim">>;
    /** Returns whether a domain receives mail. */
    receiving(id: string, options?: RequestOptions): ApiPromise<Answer<"getDomainReceiving">>;
    /** Turns receiving on or off. */
    setReceiving(id: string, body: Body<"setDomainReceiving">, options?: RequestOptions): ApiPromise<Answer<"setDomainReceiving">>;
}
