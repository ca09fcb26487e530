import {
  Account,
  ApiKeys,
  AuditLog,
  Notices,
  Erasures,
  Exports,
  Lanes,
  Members,
  Routes,
  Senders,
} from "./resources/account.ts";
import { ContactProperties, Segments, Topics } from "./resources/audience.ts";
import { Broadcasts } from "./resources/broadcasts.ts";
import { Domains } from "./resources/domains.ts";
import { Events } from "./resources/events.ts";
import {
  Drafts,
  ForwardAddresses,
  Inbound,
  Inboxes,
  ListedSenders,
  Rules,
  Threads,
} from "./resources/inbound.ts";
import { Contacts, Imports, Suppressions, Templates } from "./resources/lists.ts";
import { Emails } from "./resources/messages.ts";
import { Webhooks } from "./resources/webhooks.ts";
import { createTransport } from "./transport.ts";
import type { ClientOptions } from "./types.ts";

/** A client of one Postrider service. It keeps no connection and may be shared. */
export class Postrider {
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
  constructor(options: ClientOptions = {}) {
    const api = createTransport(options);
    this.emails = new Emails(api);
    this.templates = new Templates(api);
    this.inboxes = new Inboxes(api);
    this.listedSenders = new ListedSenders(api);
    this.rules = new Rules(api);
    this.forwardAddresses = new ForwardAddresses(api);
    this.threads = new Threads(api);
    this.drafts = new Drafts(api);
    this.inbound = new Inbound(api);
    this.domains = new Domains(api);
    this.webhooks = new Webhooks(api);
    this.events = new Events(api);
    this.contacts = new Contacts(api);
    this.contactProperties = new ContactProperties(api);
    this.topics = new Topics(api);
    this.segments = new Segments(api);
    this.broadcasts = new Broadcasts(api);
    this.suppressions = new Suppressions(api);
    this.imports = new Imports(api);
    this.apiKeys = new ApiKeys(api);
    this.lanes = new Lanes(api);
    this.auditLog = new AuditLog(api);
    this.notices = new Notices(api);
    this.erasures = new Erasures(api);
    this.exports = new Exports(api);
    this.members = new Members(api);
    this.routes = new Routes(api);
    this.senders = new Senders(api);
    this.account = new Account(api);
  }
}
