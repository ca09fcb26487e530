import { DAY_MS } from "../../core/time/units.ts";
import { PROJECT_HEADER } from "../access/project.ts";
import { UI_HEADER } from "../access/own-page.ts";

/** Answers a request to the API, with all checks. */
export type Ask = (request: Request) => Promise<Response>;

/** Returns the id of the newest event after which a stream of the project may resume, or null if there is none. */
export type NewestEvent = (senderId: string) => Promise<string | null>;

/** Answers that the page needs first. */
export interface FirstAnswers {
  /** The answer of `/ui/session`. */
  me: {
    account: { id: string };
    key: { senderId: string | null };
    member?: { projects: Project[] } | null;
  };
  /** The projects of an account-wide key, or of a person who is limited to them. */
  projects: Project[];
  /** The project that `answers` are about. Null: the key implies it. */
  project: string | null;
  /** The newest event before these answers, after which the page's stream begins. Null: none is known. */
  lastEventId: string | null;
  /** Answers of the API by the path and query that the page asks for. */
  answers: Record<string, unknown>;
}

type Project = Record<"id" | "name" | "externalId", string>;

/** The path of the API with the list that a section shows. */
const LISTS: Readonly<Record<string, string>> = {
  messages: "/v1/emails",
  domains: "/v1/domains",
  templates: "/v1/templates",
  contacts: "/v1/contacts",
  properties: "/v1/contact-properties",
  segments: "/v1/segments",
  topics: "/v1/topics",
  broadcasts: "/v1/broadcasts",
  suppressions: "/v1/suppressions",
  webhooks: "/v1/webhooks",
  keys: "/v1/api-keys",
  projects: "/v1/senders",
  routes: "/v1/routes",
  audit: "/v1/audit-log",
  notices: "/v1/notices",
};
/** The parts of an item that its page asks for too, by section. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  domains: ["/receiving"],
  webhooks: ["/deliveries?limit=50"],
};
/** Sections whose items are read from the list alone. */
const LISTED: ReadonlySet<string> = new Set(["keys", "suppressions", "audit", "notices"]);
const TROUBLES = ["bounced", "complained", "failed", "rejected", "rendering_failure", "delivery_delayed"];
/** A path of the dashboard: its section, and the id of an item. */
const PAGE = /^\/(\w*)(?:\/(\w+))?$/;

/** Paths whose pages ask for nothing but a session. */
const ALONE: ReadonlySet<string> = new Set(["/start", "/sign-in"]);
/** The requests of the sidebar. */
const SIDEBAR = ["/v1/threads?unread=true&limit=100", "/v1/notices?seen=false&limit=100"];
/** The requests of every list of threads, next to the list itself. */
const MAILBOX = ["/v1/inboxes", "/v1/mailbox"];
/** Home asks for the newest delivered message, and then for that message itself. */
const DELIVERED = "/v1/emails?status=delivered&direction=outbound&limit=1";
/** The cookie in which the page keeps the chosen project, after its account. */
const CHOSEN = /(?:^|; )postrider\.project=([^;]*)/;

/**
 * Asks the API what the page needs first, so that the page can be drawn at once. It leaves out answers that the API refuses.
 * Returns null if the browser is not signed in, or if the page needs its session alone.
 */
export async function firstAnswers(
  ask: Ask,
  { url, headers }: Request,
  now: number,
  newestEvent: NewestEvent,
): Promise<FirstAnswers | null> {
  const cookie = headers.get("cookie");
  const site = headers.get("sec-fetch-site") ?? "none";
  const { pathname, search, searchParams } = new URL(url, "http://localhost");
  // Only the user or a page of ours may begin this work.
  if (cookie === null || (site !== "none" && site !== "same-origin") || ALONE.has(pathname)) return null;
  const get = async <Answer>(path: string, project: string | null = null): Promise<Answer | undefined> => {
    const request = new Request(new URL(path, "http://localhost").href, {
      headers: { cookie, [UI_HEADER]: "1" },
    });
    if (project !== null) request.headers.set(PROJECT_HEADER, project);
    const answer = await ask(request);
    return answer.ok ? ((await answer.json()) as Answer) : undefined;
  };
  const me = await get<FirstAnswers["me"]>("/ui/session");
  if (me === undefined) return null;
  const isWide = me.key.senderId === null;
  const projects = isWide
    ? (await get<{ data: Project[] }>("/v1/senders?limit=100"))?.data
    : (me.member?.projects ?? []);
  if (projects === undefined) return null;
  const wanted = searchParams.get("project") ?? chosenProject(cookie, me.account.id);
  const project =
    projects.find(({ id, externalId }) => id === wanted || externalId === wanted) ??
    projects.find(({ externalId }) => externalId === "default") ??
    projects[0];
  const senderId = project?.id ?? me.key.senderId;
  const lastEventId = senderId === null ? null : await newestEvent(senderId);
  const paths = [...asked(pathname, search.slice(1), now), ...SIDEBAR];
  const answered = async (path: string) => [path, await get(path, project?.id)] as const;
  const answers = Object.fromEntries(await Promise.all(paths.map(answered)));
  const newest = (answers[DELIVERED] as { data: { id: string }[] } | undefined)?.data[0];
  if (newest !== undefined)
    Object.assign(answers, Object.fromEntries([await answered(`/v1/emails/${newest.id}`)]));
  return { me, projects, project: project?.id ?? null, lastEventId, answers };
}

/** Returns the UTC day that was so many days ago. */
function dayAgo(days: number, now: number): string {
  return new Date(now - days * DAY_MS).toISOString().slice(0, "2026-01-31".length);
}

/** Returns the paths of the API that a page asks first. `now`: milliseconds. */
function asked(pathname: string, query: string, now: number): readonly string[] {
  const [, section = null, id] = PAGE.exec(pathname) ?? [];
  switch (section) {
    case null:
      return [];
    case "":
      return [
        `/v1/stats?from=${dayAgo(6, now)}&interval=day`,
        `/v1/stats?from=${dayAgo(13, now)}&to=${dayAgo(7, now)}&interval=day`,
        "/v1/emails?direction=outbound&limit=1",
        "/v1/emails?direction=inbound&limit=1",
        "/v1/webhooks?limit=100",
        "/v1/domains?limit=100",
        DELIVERED,
        ...TROUBLES.map((status) => `/v1/emails?status=${status}&limit=6`),
      ];
    case "settings":
      return query === "view=notices" ? ["/v1/account"] : ["/v1/settings"];
    case "inboxes":
      return [`/v1/threads?${id === undefined ? "" : `inboxId=${id}&`}limit=50`, ...MAILBOX];
    case "rules":
      return ["/v1/rules?limit=100", "/v1/templates?limit=100", ...MAILBOX];
    case "threads":
      return ["/v1/threads?limit=50", `/v1/threads/${id}`, ...MAILBOX];
    default:
      return askedOf(section, id, query);
  }
}

/** Returns the paths that a list and the item next to it ask. */
function askedOf(section: string, id: string | undefined, query: string): readonly string[] {
  const path = LISTS[section];
  if (path === undefined) return [];
  const list = `${path}?${query === "" ? "" : `${query}&`}limit=50`;
  if (id === undefined || LISTED.has(section)) return [list];
  return [list, ...["", ...(PARTS[section] ?? [])].map((part) => `${path}/${id}${part}`)];
}

/** Returns the id of the account's project that the browser has chosen before, or null. */
function chosenProject(cookie: string, accountId: string): string | null {
  const [account, id = null] = CHOSEN.exec(cookie)?.[1]?.split("%20") ?? [];
  return account === accountId ? id : null;
}
