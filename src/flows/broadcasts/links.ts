import { createTaskLimit } from "../../core/concurrency/admission.ts";
import { type Clock, remainingTime } from "../../core/time/clock.ts";
import { textLinks } from "../../mail/text/extracts.ts";
import { scanHtml } from "../../mail/text/html-scan.ts";
import { type GuardedDeps, NO_PUBLIC_ADDRESS, requestGuarded } from "../../net/guarded-request.ts";
import type { Sending } from "../accept/sending.ts";
import { sampleOf } from "./check.ts";
import { type Acting, readyToSend } from "./ready.ts";
import { existingBroadcast } from "./save.ts";

/** Maximum number of links that a check requests. */
export const MAX_ASKED_LINKS = 100;
/** Maximum number of links requested at the same time. */
const ASKED_AT_ONCE = 8;
/** Time for one request, and for all links together, milliseconds. */
const REQUEST_MS = 6000;
const TOTAL_MS = 20_000;
/** Maximum number of redirects that are followed. */
export const MAX_REDIRECTS = 5;

/** Statuses by which a server says that there is nothing. Others below 500 may be meant for programs alone. */
const GONE: ReadonlySet<number> = new Set([404, 410]);

/** The services that ask links. */
export interface LinkDeps {
  links: GuardedDeps & { clock: Clock; allowPrivate: boolean };
}

/** The answer of a link in a content. */
export interface AskedLink {
  url: string;
  /** Null: its server could not tell, such as one that refuses programs, or it was not asked. */
  works: boolean | null;
  /** Status of the last answer. */
  status: number | null;
  problem: string | null;
}

/** Asks each link of a broadcast, as its first contact gets it, whether it leads somewhere. @throws AppError 404; 422 for what the broadcast lacks */
export async function askLinks(deps: Sending & LinkDeps, acting: Acting, id: string): Promise<AskedLink[]> {
  const ready = await readyToSend(deps, acting, await existingBroadcast(deps.db, acting.project.id, id));
  const { html, text } = (await sampleOf(deps, ready)).item;
  const found = [...scanHtml(html ?? "").links, ...textLinks(text ?? "")].map(({ url }) => url);
  const urls = [...new Set(found)].slice(0, MAX_ASKED_LINKS + 1);
  const left = remainingTime(deps.links.clock, TOTAL_MS);
  const limit = createTaskLimit(ASKED_AT_ONCE, MAX_ASKED_LINKS);
  return Promise.all(
    urls.map(async (url, at) => {
      const isOver = at >= MAX_ASKED_LINKS;
      const answer = isOver ? null : await limit(() => ask(deps, url, left));
      return { url, ...(answer ?? unclear(`was not asked: at most ${MAX_ASKED_LINKS} links are`)) };
    }),
  );
}

type Answer = Omit<AskedLink, "url">;

function unclear(problem: string, status: number | null = null): Answer {
  return { works: null, status, problem };
}

/** Asks by GET and reads the head alone: many servers refuse HEAD, or answer it otherwise. */
async function ask({ links }: LinkDeps, url: string, left: () => number): Promise<Answer> {
  let status: number | null = null;
  for (let [hops, at] = [0, url]; hops <= MAX_REDIRECTS; hops++) {
    const timeoutMs = Math.min(REQUEST_MS, left());
    if (timeoutMs === 0) return unclear("was not asked: the time was over", status);
    const outcome = await requestGuarded(links, {
      url: at,
      headers: { "User-Agent": "postrider", Accept: "*/*" },
      body: null,
      maxBodyOctets: 0,
      timeoutMs,
      allowHttp: true,
      allowPrivate: links.allowPrivate,
    });
    if (outcome.kind === "failed") return failed(outcome.reason, status);
    status = outcome.response.status;
    const next = status >= 300 && status < 400 ? outcome.response.headers.get("location") : undefined;
    if (next === undefined || !URL.canParse(next, at)) return verdict(status);
    at = new URL(next, at).href;
  }
  return { works: false, status, problem: `redirects more than ${MAX_REDIRECTS} times` };
}

/** An address that we may not ask may work for readers. */
function failed(reason: string, status: number | null): Answer {
  return reason.endsWith(NO_PUBLIC_ADDRESS)
    ? unclear(reason, status)
    : { works: false, status, problem: reason };
}

function verdict(status: number): Answer {
  if (status < 400) return { works: true, status, problem: null };
  return { works: GONE.has(status) || status >= 500 ? false : null, status, problem: `answers ${status}` };
}
