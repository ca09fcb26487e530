import type { ComponentType } from "preact";
import type { IconName } from "../controls/icon.tsx";
import { AuditPage } from "../pages/audit/audit.tsx";
import { BroadcastsPage } from "../pages/broadcasts/broadcasts.tsx";
import { ContactsPage } from "../pages/contacts/contacts.tsx";
import { DomainsPage } from "../pages/domains/domains.tsx";
import { HomePage } from "../pages/home/home.tsx";
import { InboxesPage } from "../pages/inboxes/inboxes.tsx";
import { KeysPage } from "../pages/keys/keys.tsx";
import { LivePage } from "../pages/live/live.tsx";
import { MessagesPage } from "../pages/messages/messages.tsx";
import { NoticesPage } from "../pages/notices/notices.tsx";
import { PeoplePage } from "../pages/people/people.tsx";
import { ProjectsPage } from "../pages/projects/projects.tsx";
import { RoutesPage } from "../pages/routes/routes.tsx";
import { SegmentsPage } from "../pages/segments/segments.tsx";
import { RulesPage } from "../pages/rules/rules.tsx";
import { SettingsPage } from "../pages/settings/settings.tsx";
import { SuppressionsPage } from "../pages/suppressions/suppressions.tsx";
import { TemplatesPage } from "../pages/templates/templates.tsx";
import { TopicsPage } from "../pages/topics/topics.tsx";
import { WebhooksPage } from "../pages/webhooks/webhooks.tsx";
import { match } from "../state/paths.ts";
import type { PageProps } from "../state/router.ts";
import { accountWide, can } from "../state/session.ts";

/** One section of the app, in the order of the sidebar. */
export interface Section {
  name: string;
  icon: IconName;
  /** The path that its entry in the sidebar leads to. */
  href: string;
  /** All paths that it shows. */
  paths: readonly string[];
  /** The key after `g` that goes there. */
  key: string;
  /** The scope without which it is hidden; null if every key may see it. */
  scope: string | null;
  /** True if it takes an account-wide key. */
  accountWide?: true;
  page: ComponentType<PageProps>;
}

export const SECTIONS: readonly Section[] = [
  { name: "Home", icon: "home", href: "/", paths: ["/"], key: "h", scope: null, page: HomePage },
  {
    name: "Messages",
    icon: "messages",
    href: "/messages",
    key: "m",
    scope: "emails:read",
    paths: ["/messages", "/messages/:id"],
    page: MessagesPage,
  },
  {
    name: "Live",
    icon: "live",
    href: "/live",
    key: "l",
    scope: "emails:read",
    paths: ["/live"],
    page: LivePage,
  },
  {
    name: "Inboxes",
    icon: "inboxes",
    href: "/inboxes",
    key: "i",
    scope: "threads:read",
    paths: ["/inboxes", "/inboxes/:inboxId", "/threads/:threadId"],
    page: InboxesPage,
  },
  {
    name: "Rules",
    icon: "rules",
    href: "/rules",
    key: "y",
    scope: "inboxes:read",
    paths: ["/rules"],
    page: RulesPage,
  },
  {
    name: "Notices",
    icon: "bell",
    href: "/notices",
    key: "n",
    scope: "metrics:read",
    paths: ["/notices", "/notices/:id"],
    page: NoticesPage,
  },
  {
    name: "Domains",
    icon: "domains",
    href: "/domains",
    key: "d",
    scope: "domains:read",
    paths: ["/domains", "/domains/:id"],
    page: DomainsPage,
  },
  {
    name: "Templates",
    icon: "templates",
    href: "/templates",
    key: "t",
    scope: "templates:read",
    paths: ["/templates", "/templates/:id"],
    page: TemplatesPage,
  },
  {
    name: "Contacts",
    icon: "contacts",
    href: "/contacts",
    key: "c",
    scope: "contacts:read",
    paths: ["/contacts", "/contacts/:id", "/properties", "/properties/:id"],
    page: ContactsPage,
  },
  {
    name: "Segments",
    icon: "segments",
    href: "/segments",
    key: "g",
    scope: "audience:read",
    paths: ["/segments", "/segments/:id"],
    page: SegmentsPage,
  },
  {
    name: "Topics",
    icon: "topics",
    href: "/topics",
    key: "f",
    scope: "audience:read",
    paths: ["/topics", "/topics/:id"],
    page: TopicsPage,
  },
  {
    name: "Broadcasts",
    icon: "broadcasts",
    href: "/broadcasts",
    key: "b",
    scope: "audience:read",
    paths: ["/broadcasts", "/broadcasts/:id"],
    page: BroadcastsPage,
  },
  {
    name: "Suppressions",
    icon: "suppressions",
    href: "/suppressions",
    key: "s",
    paths: ["/suppressions", "/suppressions/:email"],
    scope: "suppressions:read",
    page: SuppressionsPage,
  },
  {
    name: "Webhooks",
    icon: "webhooks",
    href: "/webhooks",
    key: "w",
    scope: "webhooks:read",
    paths: ["/webhooks", "/webhooks/:id"],
    page: WebhooksPage,
  },
  {
    name: "Keys",
    icon: "keys",
    href: "/keys",
    key: "k",
    scope: "api_keys:read",
    paths: ["/keys", "/keys/:id"],
    page: KeysPage,
  },
  {
    name: "Projects",
    icon: "projects",
    href: "/projects",
    key: "p",
    scope: "senders:read",
    paths: ["/projects", "/projects/:id"],
    accountWide: true,
    page: ProjectsPage,
  },
  {
    name: "Routes",
    icon: "routes",
    href: "/routes",
    key: "r",
    scope: "senders:read",
    paths: ["/routes", "/routes/:id"],
    accountWide: true,
    page: RoutesPage,
  },
  {
    name: "People",
    icon: "contacts",
    href: "/people",
    key: "o",
    scope: "members:write",
    paths: ["/people", "/people/:id"],
    accountWide: true,
    page: PeoplePage,
  },
  {
    name: "Audit log",
    icon: "audit",
    href: "/audit",
    key: "u",
    scope: "audit:read",
    paths: ["/audit", "/audit/:id"],
    accountWide: true,
    page: AuditPage,
  },
  {
    name: "Settings",
    icon: "settings",
    href: "/settings",
    key: "e",
    scope: "metrics:read",
    paths: ["/settings"],
    accountWide: true,
    page: SettingsPage,
  },
];

/** Returns whether the key may open the section. */
export function mayOpen({ scope, accountWide: wide }: Section): boolean {
  return (scope === null || can(scope)) && (wide !== true || accountWide.value);
}

/** Returns whether the reader may open the page of a URL. */
export function mayVisit(url: string): boolean {
  const found = sectionOf(url.split("?", 1)[0] ?? url);
  return found !== null && mayOpen(found.section);
}

/** Returns the section of a path with the path's parameters, or null. */
export function sectionOf(path: string): { section: Section; params: Record<string, string> } | null {
  for (const section of SECTIONS)
    for (const pattern of section.paths) {
      const params = match(pattern, path);
      if (params !== null) return { section, params };
    }
  return null;
}
