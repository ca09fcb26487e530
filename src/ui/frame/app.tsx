import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { openStream } from "../api/stream.ts";
import { EmptyState } from "../components/empty.tsx";
import { Help } from "./help.tsx";
import { Page } from "../components/page.tsx";
import { Problem } from "../controls/problem.tsx";
import { Sidebar } from "./sidebar.tsx";
import { Undo } from "./undo.tsx";
import { SignInPage } from "../pages/sign-in.tsx";
import { mayOpen, mayVisit, SECTIONS, type Section, sectionOf } from "./routes.ts";
import { useKey } from "../state/keyboard.ts";
import { navigate, place } from "../state/router.ts";
import { can, me, projectId, sessionError, startSession } from "../state/session.ts";
import { startTail } from "../state/tail.ts";

/** The whole page: the sign-in, or the sidebar with the section that the path names. */
export function App() {
  const { path } = place.value;
  if (me.value === undefined) return sessionError.value === null ? null : <Unreachable />;
  if (me.value === null || path === "/sign-in" || path === "/start") return <SignInPage />;
  return <Shell path={path} />;
}

function Unreachable() {
  const retry = () => {
    sessionError.value = null;
    void startSession();
  };
  return (
    <main class="alone">
      <h1>Postrider</h1>
      <Problem error={sessionError.value} onRetry={retry} />
    </main>
  );
}

function Shell({ path }: { path: string }) {
  const help = useSignal(false);
  const project = projectId.value;
  useEffect(() => {
    if (project === null) return;
    const ends = [startTail(), openStream()];
    return () => {
      for (const end of ends) end();
    };
  }, [project]);
  useKey("?", () => {
    help.value = true;
  });
  useKey("/", () => document.querySelector<HTMLInputElement>("[data-search]")?.focus());
  useKey("c", () => can("emails:send") && navigate("/messages?compose=1"));
  const found = sectionOf(path);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      {SECTIONS.map((section) => (
        <SectionKey key={section.key} section={section} />
      ))}
      <Sidebar current={found?.section ?? null} onHelp={() => (help.value = true)} />
      {found === null ? (
        <NoSuchPage />
      ) : !mayOpen(found.section) ? (
        <NoAccess section={found.section} />
      ) : (
        <found.section.page
          key={`${project} ${found.section.name}`}
          params={found.params}
          mayVisit={mayVisit}
        />
      )}
      <Undo />
      {help.value ? <Help onClose={() => (help.value = false)} /> : null}
    </div>
  );
}

function SectionKey({ section: { key, href } }: { section: Section }) {
  useKey(`g ${key}`, () => navigate(href));
  return null;
}

function NoAccess({ section }: { section: Section }) {
  return (
    <Page title={section.name}>
      <EmptyState>{reasonFor(section)}</EmptyState>
    </Page>
  );
}

/** Returns why the reader may not open a section. People have a role, and programs a key with scopes. */
function reasonFor({ scope }: Section): string {
  const member = me.value?.member ?? null;
  const lacks = scope !== null && !can(scope);
  if (member !== null)
    return lacks
      ? `Your role, ${member.role}, does not open this page. An owner can change it.`
      : "This page needs access to all projects. An owner can give it to you.";
  return lacks
    ? `The key that you signed in with lacks the scope ${scope}.`
    : "This page needs a key for all projects of the account.";
}

function NoSuchPage() {
  return (
    <Page title="Not found">
      <EmptyState
        action={
          <a class="button" href="/">
            Go to Home
          </a>
        }
      >
        There is no page at this address.
      </EmptyState>
    </Page>
  );
}
