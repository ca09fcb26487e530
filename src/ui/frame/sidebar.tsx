import { useEffect } from "preact/hooks";
import { type Signal, useSignal } from "@preact/signals";
import { liveState, useLiveReload } from "../api/live.ts";
import { get, type Query } from "../api/client.ts";
import { useReloadAfter, useResource } from "../api/resource.ts";
import type { LiveEvent, Page } from "../api/types.ts";
import { mayOpen, type Section, SECTIONS } from "./routes.ts";
import { chooseProject, me, project, projectId, projects, signOut } from "../state/session.ts";
import { readChanges, seenChanges } from "../state/unread.ts";
import { Dialog } from "../controls/dialog.tsx";
import { Icon } from "../controls/icon.tsx";
import { chooseTheme, type Theme, theme, THEMES } from "../state/theme.ts";

/** Sections in the bottom bar of a phone. The rest is in the menu "More". */
const BAR_SECTIONS = 4;
/** Maximum number of things that are counted; more are shown as `99+`. */
const MAX_COUNTED = 100;

/** The things in a section that wait for the reader. */
interface Counted {
  path: string;
  query: Query;
  /** Minimum time between reloads while events arrive, ms. */
  everyMs: number;
  /** Returns whether the count may differ after an event. */
  concerns: (event: LiveEvent) => boolean;
  /** The changes that this tab makes to the count. */
  changes: Signal<number>;
  /** The word after the count, for screen readers. */
  word: string;
}

// No event is about a notice, but most have their cause in events.
const NOTICES: Counted = {
  path: "/v1/notices",
  query: { seen: false },
  everyMs: 5_000,
  concerns: () => true,
  changes: seenChanges,
  word: "unseen",
};

const COUNTED: Readonly<Record<string, Counted>> = {
  Inboxes: {
    path: "/v1/threads",
    query: { unread: true },
    everyMs: 1_500,
    concerns: ({ type }) => type === "inbound_received",
    changes: readChanges,
    word: "unread",
  },
  Notices: NOTICES,
};

/** The sections: a column, icons on a narrower window, a bar at the bottom of a phone. */
export function Sidebar({ current, onHelp }: { current: Section | null; onHelp: () => void }) {
  const more = useSignal(false);
  const sections = SECTIONS.filter(mayOpen);
  const inMore = current !== null && sections.indexOf(current) >= BAR_SECTIONS;
  const close = () => {
    more.value = false;
  };
  useEffect(close, [current]);
  return (
    <nav class="sidebar" aria-label="Sections">
      <div class="sidebar-top">
        <a class="brand" href="/" aria-label="Postrider, home">
          <span class="brand-mark" aria-hidden="true" />
          <span class="brand-name">Postrider</span>
        </a>
        <ProjectSwitch />
      </div>
      <ul class="sections">
        {sections.map((section, index) => (
          <li key={section.name} class={index < BAR_SECTIONS ? "in-bar" : undefined}>
            <SectionLink section={section} current={section === current} />
          </li>
        ))}
        <li class="more">
          <button
            type="button"
            class="section"
            onClick={() => (more.value = true)}
            aria-haspopup="dialog"
            aria-current={inMore ? "true" : undefined}
          >
            <Icon name="more" />
            <span class="section-name">More</span>
            {sections.some(({ name }) => name === "Notices") ? <Shown counted={NOTICES} /> : null}
          </button>
        </li>
      </ul>
      <Foot onHelp={onHelp} />
      {more.value ? (
        <Dialog title="More" onClose={close}>
          <div class="dialog-body more-menu">
            <ProjectSwitch />
            <ul class="sections">
              {sections.slice(BAR_SECTIONS).map((section) => (
                <li key={section.name}>
                  <SectionLink section={section} current={section === current} />
                </li>
              ))}
            </ul>
            <Foot onHelp={onHelp} />
          </div>
        </Dialog>
      ) : null}
    </nav>
  );
}

function SectionLink({ section: { name, icon, href }, current }: { section: Section; current: boolean }) {
  return (
    <a class="section" href={href} title={name} aria-current={current ? "page" : undefined}>
      <Icon name={icon} />
      <span class="section-name">{name}</span>
      <Count of={name} />
    </a>
  );
}

/** The number of things in a section that wait for the reader, if it counts something. */
function Count({ of: name }: { of: string }) {
  const counted = COUNTED[name];
  return counted === undefined ? null : <Waiting counted={counted} />;
}

function useCount({ path, query, word }: Counted) {
  return useResource(word, () => get<Page<unknown>>(path, { ...query, limit: MAX_COUNTED }));
}

/** The number, which is read again when it may differ. */
function Waiting({ counted }: { counted: Counted }) {
  const { reload } = useCount(counted);
  useLiveReload(reload, counted.everyMs, counted.concerns);
  useReloadAfter(counted.changes.value, reload);
  return <Shown counted={counted} />;
}

/** The number as a `Waiting` of this page reads it. */
function Shown({ counted }: { counted: Counted }) {
  const count = useCount(counted).value.value?.data.length ?? 0;
  if (count === 0) return null;
  return (
    <span class="unread">
      {count >= MAX_COUNTED ? "99+" : count}
      <span class="hidden"> {counted.word}</span>
    </span>
  );
}

const LIVE_WORDS = {
  connecting: "Connecting to the live stream",
  live: "Live: events appear as they happen",
  polling: "The live stream is not available, so pages look for news every few seconds",
  busy: "Very many events happen, so pages look for news every few seconds",
} as const;

function Foot({ onHelp }: { onHelp: () => void }) {
  const { member = null, key } = me.value ?? {};
  const who = member === null ? (key?.name ?? undefined) : `${member.email}, ${member.role}`;
  return (
    <div class="sidebar-foot">
      <p class="who" title={who}>
        <span class={`live-dot ${liveState.value}`} title={LIVE_WORDS[liveState.value]} aria-hidden="true" />
        <span class="who-name">{who}</span>
        <span class="hidden">{LIVE_WORDS[liveState.value]}</span>
      </p>
      <div class="foot-buttons">
        <ThemeChoice />
        <button
          type="button"
          class="button bare"
          onClick={onHelp}
          title="Keyboard help (?)"
          aria-label="Keyboard help"
        >
          <Icon name="help" />
        </button>
        <a class="button bare" href="/docs" title="API reference" aria-label="API reference">
          <Icon name="external" />
        </a>
        <button type="button" class="button bare small sign-out" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </div>
  );
}

const NAMES: Readonly<Record<Theme, string>> = { system: "System", light: "Light", dark: "Dark" };

/** Chooses between light and dark. */
function ThemeChoice() {
  return (
    <select
      class="theme-choice"
      aria-label="Colours"
      title="Colours"
      value={theme.value}
      onChange={(event) => {
        const next = THEMES.find((name) => name === event.currentTarget.value);
        if (next !== undefined) chooseTheme(next);
      }}
    >
      {THEMES.map((name) => (
        <option key={name} value={name}>
          {NAMES[name]}
        </option>
      ))}
    </select>
  );
}

/** Chooses the project that all pages show. */
function ProjectSwitch() {
  const list = projects.value;
  if (list.length <= 1)
    return (
      <p class="project-name" title={project.value?.externalId} dir="auto">
        {project.value?.name ?? (list.length === 0 ? "" : "No project")}
      </p>
    );
  return (
    <select
      class="project-choice"
      aria-label="Project"
      value={projectId.value ?? ""}
      onChange={(event) => chooseProject(event.currentTarget.value)}
    >
      {list.map(({ id, name }) => (
        <option key={id} value={id} dir="auto">
          {name}
        </option>
      ))}
    </select>
  );
}
