import { Account, ApiKeys, AuditLog, Notices, Erasures, Exports, Lanes, Members, Routes, Senders } from "./resources/account.ts";
import { ContactProperties, Segments, Topics } from "./resources/audience.ts";
import { Broadcasts } from "./resources/broadcasts.ts";
import { Domains } from "./resources/domains.ts";
import { Events } from "./resources/events.ts";
import { Drafts, ForwardAddresses, Inbound, Inboxes, ListedSenders, Rules, Threads } from "./resources/inbound.ts";
import { Contacts, Imports, Suppressions, Templates } from "./resources/lists.ts";
import { Emails } from "./resources/messages.ts";
import { Webhooks } from "./resources/webhooks.ts";
import type { ClientOptions } from "./types.ts";
/** A client of one Postrider service. It keeps no connection and may be shared. */
export declare class Postrider {
    readonly emails: Emails;
    readonly templates: Templates;
    readonly inboxes: Inboxes;
    readonly listedSenders: ListedSenders;
    readonly rules: Rules;
    readonly forwardAddresses: ForwardAddresses;
    readonly threads: Threads;
    readonly drafts: Drafts;
    readonly inbound: Inbound;
    readonly domains: Domains;
    readonly webhooks: Webhooks;
    readonly events: Events;
    readonly contacts: Contacts;
    readonly contactProperties: ContactProperties;
    readonly topics: Topics;
    readonly segments: Segments;
    readonly broadcasts: Broadcasts;
    readonly suppressions: Suppressions;
    readonly imports: Imports;
    readonly apiKeys: ApiKeys;
    readonly lanes: Lanes;
    readonly auditLog: AuditLog;
    readonly notices: Notices;
    readonly erasures: Erasures;
    /** Exports of all that is stored about an address. */
    readonly exports: Exports;
    readonly members: Members;
    readonly routes: Routes;
    readonly senders: Senders;
    readonly account: Account;
    /** Throws a TypeError if there is no API key. */
    constructor(options?: ClientOptions);
}
