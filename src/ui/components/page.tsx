import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Suspension } from "./suspension.tsx";

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
