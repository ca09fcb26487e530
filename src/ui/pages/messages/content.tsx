import { browserPath, get, send } from "../../api/client.ts";
import { useReloadAfter, useResource } from "../../api/resource.ts";
import type { Attempt, Message, Page } from "../../api/types.ts";
import { Code, CopyButton } from "../../controls/copy.tsx";
import { Preview } from "../../components/preview.tsx";
import { Problem } from "../../controls/problem.tsx";
import { isCaptured } from "../../words/answer.ts";
import { Status } from "../../components/status.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { LocalTime } from "../../components/time.tsx";
import { UnreadParts } from "../../components/unread-parts.tsx";
import { navigate, query, urlWith } from "../../state/router.ts";
import { Attachments } from "./attachments.tsx";
import { counted } from "../../words/amounts.ts";
import { duration } from "../../words/time.ts";
import { Authentication } from "./authentication.tsx";

/** Maximum characters shown of a body or source. The download has all of it. */
const MAX_SOURCE_CHARS = 256 * 1024;
/** Header fields that are shown. The source has all of them. */
const SHOWN_HEADERS = 200;
const SHOWN_ATTEMPTS = 100;

interface View {
  id: string;
  label: string;
  show: (message: Message) => preact.ComponentChildren;
}

/** Returns the views that the message has something for. */
function viewsOf(message: Message): View[] {
  const { html, text, attachments, direction, links, codes } = message;
  const views: (View | null)[] = [
    html === null
      ? null
      : {
          id: "preview",
          label: "Preview",
          show: ({ id, subject }) => <Preview messageId={id} title={`Preview of ${subject}`} />,
        },
    text === null ? null : { id: "text", label: "Text", show: () => <PlainText text={text} /> },
    { id: "headers", label: "Headers", show: () => <Headers message={message} /> },
    { id: "source", label: "Source", show: () => <Source message={message} /> },
    attachments.length === 0
      ? null
      : {
          id: "attachments",
          label: `Attachments ${attachments.length}`,
          show: () => <Attachments message={message} />,
        },
    (links ?? []).length + (codes ?? []).length === 0
      ? null
      : { id: "links", label: "Links and codes", show: () => <Links message={message} /> },
    direction === "outbound"
      ? { id: "smtp", label: "SMTP", show: () => <Conversations message={message} /> }
      : { id: "auth", label: "Authentication", show: () => <Authentication message={message} /> },
  ];
  return views.filter((view) => view !== null);
}

/** The contents of the message, and the conversations that handed it over. */
export function ContentTabs({ message }: { message: Message }) {
  const views = viewsOf(message);
  const selected = views.find(({ id }) => id === query.value.get("tab")) ?? views[0];
  if (selected === undefined) return null;
  return (
    <>
      <UnreadParts message={message} />
      <Tabs
        label="Content"
        tabs={views}
        selected={selected.id}
        onSelect={(tab) => navigate(urlWith({ tab: tab === views[0]?.id ? null : tab }), { replace: true })}
      >
        {selected.show(message)}
      </Tabs>
    </>
  );
}

function PlainText({ text }: { text: string }) {
  return (
    <>
      <pre class="text" dir="auto">
        {text.slice(0, MAX_SOURCE_CHARS)}
      </pre>
      {text.length > MAX_SOURCE_CHARS ? <p class="quiet">The rest is in the source.</p> : null}
    </>
  );
}

function Headers({ message }: { message: Message }) {
  const entries = Object.entries({
    ...(message.messageId === null ? {} : { "Message-ID": message.messageId }),
    ...message.headers,
  }).slice(0, SHOWN_HEADERS);
  return (
    <dl class="headers">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span dir="auto">{value}</span>
            <CopyButton text={value} what={name} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function rawPath(id: string): string {
  return `/v1/emails/${encodeURIComponent(id)}/raw`;
}

function Source({ message: { id } }: { message: Message }) {
  const source = useResource(`source ${id}`, async () =>
    (await (await send("GET", rawPath(id))).text()).slice(0, MAX_SOURCE_CHARS),
  );
  const text = source.value.value;
  return (
    <>
      <p class="tab-tools">
        <a class="button small" href={browserPath(rawPath(id))} download={`${id}.eml`}>
          Download
        </a>
      </p>
      <Problem error={source.error.value} onRetry={source.reload} />
      {text === null ? null : <Code text={text} what="source" />}
      {text?.length === MAX_SOURCE_CHARS ? <p class="quiet">The rest is in the download.</p> : null}
    </>
  );
}

function Links({ message: { links = [], codes = [] } }: { message: Message }) {
  return (
    <dl class="headers">
      {codes.map((code) => (
        <div key={code}>
          <dt>Code</dt>
          <dd>
            <code>{code}</code>
            <CopyButton text={code} what="code" />
          </dd>
        </div>
      ))}
      {links.map(({ url, text }) => (
        <div key={url}>
          <dt dir="auto">{text === "" ? "Link" : text}</dt>
          <dd>
            <span>{url}</span>
            <CopyButton text={url} what="link" />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The SMTP conversation of each attempt, newest first. */
function Conversations({ message: { id, events } }: { message: Message }) {
  const attempts = useResource(`attempts ${id}`, () =>
    get<Page<Attempt>>(`/v1/emails/${encodeURIComponent(id)}/attempts`, { limit: SHOWN_ATTEMPTS }),
  );
  // A new event may mean a new attempt.
  useReloadAfter(events.length, attempts.reload);
  const list = attempts.value.value?.data;
  return (
    <>
      <Problem error={attempts.error.value} onRetry={attempts.reload} />
      {list?.length === 0 ? <p class="quiet">No mail server has been tried yet.</p> : null}
      {list?.toReversed().map((attempt, index) => (
        <Conversation key={`${attempt.email} ${attempt.attempt}`} attempt={attempt} open={index === 0} />
      ))}
    </>
  );
}

function Conversation({ attempt, open }: { attempt: Attempt; open: boolean }) {
  const { email, status, startedAt, durationMs, mx, ip, tls, lines } = attempt;
  const facts = [mx, ip, tls, duration(durationMs)].filter((fact) => fact !== null);
  return (
    <details class="recipient" open={open}>
      <summary>
        <Status status={status} captured={isCaptured(attempt)} />
        <span class="cut">
          Try {attempt.attempt} to {email}
        </span>
        <LocalTime at={startedAt} short />
      </summary>
      <p class="quiet">{facts.join(" · ")}</p>
      {lines.length === 0 ? (
        <p class="quiet">No server was contacted.</p>
      ) : (
        <ol class="smtp" aria-label={counted(lines.length, "line")}>
          {lines.map((line, index) => (
            <li key={index} class={SIDES[line.slice(0, 2)] ?? "smtp-note"}>
              {line}
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

const SIDES: Readonly<Record<string, string>> = { "C:": "smtp-client", "S:": "smtp-server" };
