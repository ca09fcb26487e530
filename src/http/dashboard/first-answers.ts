import { DAY_MS } from "../../core/time/units.ts";
import { PROJECT_HEADER } from "../access/project.ts";
import { UI_HEADER } from "../access/own-page.ts";

/** Answers a request to the API, with all checks. */
export type Ask = (request: Request) => Promise<Response>;

/** Answers that the page would ask for first. */
export interface FirstAnswers {
  /** That of `/ui/session`. */
  me?: { key: { senderId: string | null } };
  /** The projects of an account-wide key. */
  projects?: Project[];
  /** The project that `answers` are about. Null: the key implies it. */
  project?: string | null;
  /** Answers of the API by the path and query that the page asks for. */
  answers?: Record<string, unknown>;
}

type Project = Record<"id" | "name" | "externalId", string>;

/** Pages whose first content may be brought. `now`: milliseconds. */
const ASKED: Readonly<Record<string, (query: string, now: number) => readonly string[]>> = {
  "/": (_, now) => [
    `/v1/stats?from=${new Date(now - 6 * DAY_MS).toISOString().slice(0, 10)}&interval=day`,
    "/v1/emails?direction=outbound&limit=1",
    "/v1/emails?direction=inbound&limit=1",
    "/v1/webhooks?limit=1",
    "/v1/domains?limit=100",
    "/v1/emails?status=delivered&direction=outbound&limit=1",
    ...["bounced", "complained", "failed", "rejected", "rendering_failure", "delivery_delayed"].map(
      (status) => `/v1/emails?status=${status}&limit=6`,
    ),
  ],
  "/messages": (query) => [`/v1/emails?${query === "" ? "" : `${query}&`}limit=50`],
  "/inboxes": () => ["/v1/threads?limit=50", "/v1/inboxes"],
};
/** What the sidebar asks for. */
const UNREAD = "/v1/threads?unread=true&limit=100";

/**
 * Asks the API what the page asks for first, so that its first content need not wait for requests. What the page then does not
 * use, or what the API refuses, is only a little work in vain. Returns nothing if the browser is not signed in.
 */
export async function firstAnswers(ask: Ask, { url, headers }: Request, now: number): Promise<FirstAnswers> {
  const cookie = headers.get("cookie");
  const site = headers.get("sec-fetch-site") ?? "none";
  // Only the user or a page of ours may begin this work.
  if (cookie === null || (site !== "none" && site !== "same-origin")) return {};
  const get = async <Answer>(path: string, project: string | null = null): Promise<Answer | undefined> => {
    const request = new Request(new URL(path, "http://localhost").href, {
      headers: { cookie, [UI_HEADER]: "1" },
    });
    if (project !== null) request.headers.set(PROJECT_HEADER, project);
    const answer = await ask(request);
    return answer.ok ? ((await answer.json()) as Answer) : undefined;
  };
  const me = await get<NonNullable<FirstAnswers["me"]>>("/ui/session");
  if (me === undefined) return {};
  const isWide = me.key.senderId === null;
  const projects = isWide ? (await get<{ data: Project[] }>("/v1/senders?limit=100"))?.data : [];
  if (projects === undefined) return { me };
  const project = projects.find(({ externalId }) => externalId === "default") ?? projects[0];
  const { pathname, search } = new URL(url, "http://localhost");
  const asked = ASKED[pathname]?.(search.slice(1), now) ?? [];
  const answers = await Promise.all(
    [...asked, UNREAD].map(async (path) => [path, await get(path, project?.id)] as const),
  );
  return { me, projects, project: project?.id ?? null, answers: Object.fromEntries(answers) };
}
