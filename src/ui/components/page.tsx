import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { accountWide, me, project } from "../state/session.ts";
import { LocalTime } from "./time.tsx";

interface PageProps {
  title: string;
  /** Between the title and the actions, such as a search field. */
  tools?: ComponentChildren;
  /** Buttons at the right. */
  actions?: ComponentChildren;
  /** Below the title, such as filters. */
  bar?: ComponentChildren;
  /** `plain`: the page scrolls as a whole. `panes`: its parts scroll. */
  layout?: "plain" | "panes";
  children: ComponentChildren;
}

/** A page of the app: a title with its tools, and a body. */
export function Page({ title, tools, actions, bar, layout = "plain", children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Postrider`;
  }, [title]);
  return (
    <main class="page" id="main" tabIndex={-1}>
      <header class="page-head">
        <h1>{title}</h1>
        <div class="page-tools">{tools}</div>
        <div class="page-actions">{actions}</div>
      </header>
      <Suspension />
      {bar === undefined ? null : <div class="page-bar">{bar}</div>}
      <div class={`page-body ${layout}`}>{children}</div>
    </main>
  );
}

/** Says on every page that the project is suspended, because then nothing can be sent. */
function Suspension() {
  const at = (project.value ?? me.value?.project)?.suspendedAt ?? null;
  if (at === null) return null;
  return (
    <p class="notice" role="status">
      This project is suspended since <LocalTime at={at} />. Its sends are refused.{" "}
      {accountWide.value ? <a href="/projects">Lift the suspension</a> : "The account's owner can lift it."}
    </p>
  );
}
