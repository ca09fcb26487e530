import { computed, signal } from "@preact/signals";
import { get, NotKnown, post, remove, setAccess } from "../api/client.ts";
import { ApiError } from "../api/error.ts";
import { bring, forgetAll, NEWEST_EVENT } from "../api/resource.ts";
import type { Me, Page, Project } from "../api/types.ts";
import { forgetDrafts } from "./draft.ts";
import { navigate, place } from "./router.ts";
import { type Listed, type StartData, takeStartData } from "./start-data.ts";
import { readChoice, storeChoice } from "./storage.ts";

/** Undefined: not known yet. Null: signed out. */
export const me = signal<Me | null | undefined>(undefined);
/** The projects that the key may open; one if it is a project's own key. */
export const projects = signal<readonly Listed[]>([]);
export const projectId = signal<string | null>(null);
/** Why the session could not be read; null if it could. */
export const sessionError = signal<ApiError | null>(null);

/** The command that runs the program on its machine. */
export const program = signal("postrider");
/** Host of the OpenID provider that signs members in. Null: there is none. */
export const provider = signal<string | null>(null);
/** True if there are members, whom a mailed link signs in. */
export const mailsLinks = signal(true);

export const project = computed(() => projects.value.find(({ id }) => id === projectId.value) ?? null);
/** True if the key spans all projects. */
export const accountWide = computed(() => me.value?.key.senderId === null);

const PROJECT_CHOICE = "project";
/** The account that the chosen project belongs to. */
let accountId = "";
const SIGN_IN = "/sign-in";
/** Projects that the switcher lists, next to the chosen one. The page of projects has the others. */
const LISTED_PROJECTS = 100;

/** Returns whether the key has the scope. A key without scopes has all. */
export function can(scope: string): boolean {
  const scopes: readonly string[] = me.value?.key.scopes ?? [];
  return scopes.length === 0 || scopes.includes(scope);
}

/** Reads who is signed in, or turns to the sign-in page. */
export async function startSession(): Promise<void> {
  setAccess({ onSignedOut: signedOut });
  // The page of a start link brings no session.
  if (await takeUp(takeStartData())) return;
  const isStart = place.peek().path === "/start";
  const refusal = isStart ? await openStartLink() : null;
  try {
    await readSession();
    if (isStart) navigate("/", { replace: true });
  } catch (thrown) {
    const signsIn = thrown instanceof ApiError && thrown.status === 401;
    sessionError.value = signsIn ? refusal : (thrown as ApiError);
    if (signsIn) signedOut();
  }
}

/** Takes up the session that the page brings. Returns whether it brings one. */
export async function takeUp(brought: StartData): Promise<boolean> {
  const { me: found, project, values, lastEventId } = brought;
  program.value = brought.program ?? program.peek();
  provider.value = brought.provider ?? null;
  mailsLinks.value = brought.mailsLinks ?? true;
  if (found === undefined) return false;
  await enter(found, brought.projects ?? null);
  if (values !== undefined && (project === null || project === projectId.peek()))
    bring({ ...values, [NEWEST_EVENT]: lastEventId });
  return true;
}

/**
 * Opens a session with the token of a start link. The token is in the fragment, so that no request line carries it.
 * Returns why the link is refused, or null. A browser that is signed in already does not need the link.
 */
async function openStartLink(): Promise<ApiError | null> {
  const token = window.location.hash.slice(1);
  window.history.replaceState(null, "", "/start");
  if (token === "") return null;
  return post("/ui/session", { token }).then(
    () => null,
    (refusal: ApiError) => refusal,
  );
}

/** Opens a session with a key. @throws ApiError if the key is refused */
export async function signIn(key: string): Promise<void> {
  await post("/ui/session", { key });
  sessionError.value = null;
  await readSession();
  const next = new URLSearchParams(place.peek().search).get("next");
  navigate(next?.startsWith("/") === true && !next.startsWith("//") ? next : "/", { replace: true });
}

/** Asks for a link to sign in, which a member gets by mail. */
export async function mailLink(email: string): Promise<void> {
  await post("/ui/session", { email });
  sessionError.value = null;
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await remove("/ui/session").catch(() => {});
  me.value = null;
  forgetAll();
  forgetDrafts();
  navigate(SIGN_IN);
}

function signedOut(): void {
  me.value = null;
  forgetAll();
  const { path, search } = place.peek();
  if (path === SIGN_IN) return;
  const back = path === "/" || path === "/start" ? "" : `?next=${encodeURIComponent(path + search)}`;
  navigate(SIGN_IN + back, { replace: true });
}

async function readSession(): Promise<void> {
  return enter(await get<Me>("/ui/session", {}, { account: true }), null);
}

/** Takes up the session, and its projects if they are known. */
async function enter(found: Me, listed: readonly Listed[] | null): Promise<void> {
  accountId = found.account.id;
  const own = found.member?.projects ?? [];
  if (own.length > 0) await takeProjects(own);
  else if (found.project === null) await takeProjects(listed ?? (await listProjects()));
  else {
    projects.value = [found.project];
    projectId.value = found.project.id;
  }
  me.value = found;
}

/** Reads the projects of an account-wide key, and keeps the choice if it is still one of them. */
export async function readProjects(): Promise<void> {
  await takeProjects(await listProjects());
}

async function listProjects(): Promise<readonly Listed[]> {
  return (await get<Page<Project>>("/v1/senders", { limit: LISTED_PROJECTS }, { account: true })).data;
}

/** Takes up the projects, and chooses the one that the URL names, or that was chosen before, or the default one. */
async function takeProjects(data: readonly Listed[]): Promise<void> {
  const named = new URLSearchParams(place.peek().search).get("project");
  const wanted = named ?? projectId.peek() ?? keptChoice();
  const listed = data.find(({ id, externalId }) => id === wanted || externalId === wanted);
  const other = listed === undefined && wanted !== null ? await findProject(wanted) : null;
  const chosen = listed ?? other ?? data.find(({ externalId }) => externalId === "default") ?? data[0];
  projects.value = other === null ? data : [...data, other];
  if (chosen?.id !== projectId.peek()) forgetAll();
  setProject(chosen?.id ?? null);
}

/** Returns the project of the account that this browser has chosen before, or null. */
function keptChoice(): string | null {
  const [account, id = null] = readChoice(PROJECT_CHOICE)?.split(" ") ?? [];
  return account === accountId ? id : null;
}

/** Returns a project that is not among the listed ones, or null. */
async function findProject(id: string): Promise<Project | null> {
  const path = `/v1/senders/${encodeURIComponent(id)}`;
  return get<Project>(path, {}, { account: true }).catch((thrown) => {
    if (thrown instanceof NotKnown) throw thrown;
    return null;
  });
}

function setProject(id: string | null): void {
  setAccess({ project: id });
  projectId.value = id;
  if (id !== null) storeChoice(PROJECT_CHOICE, `${accountId} ${id}`);
}

/** Turns to another project. */
export function chooseProject(id: string): void {
  if (id === projectId.peek()) return;
  forgetAll();
  forgetDrafts();
  setProject(id);
  navigate("/");
  // A project beyond the listed ones is added to the switcher.
  if (project.peek() === null) void readProjects().catch(() => {});
}
