import { useSignal } from "@preact/signals";
import type { Message } from "../../api/types.ts";
import { browserPath } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Preview } from "../../components/preview.tsx";
import { capturesTo } from "../../state/installation.ts";
import { Dot, Status } from "../../components/status.tsx";
import { Invitation } from "./invitation.tsx";
import { UnreadParts } from "../../components/unread-parts.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { counted, sizeText } from "../../words/amounts.ts";
import { can } from "../../state/session.ts";
import { readMessage } from "../messages/detail.tsx";
import type { Writing } from "./writing/composer.tsx";

/** One message of a conversation. */
export function ThreadMessage({
  message,
  open,
  onReplied,
  onWrite,
}: {
  message: Message;
  open: boolean;
  onReplied: () => void;
  /** Begins a reply to it, or sends it on. */
  onWrite: (writing: Writing) => void;
}) {
  const isCanceled =
    message.recipients.length > 0 && message.recipients.every(({ reason }) => reason === "canceled");
  const { id, direction, status, addresses, createdAt, testMode } = message;
  const { name, email } = addresses.from;
  return (
    <li class={direction === "inbound" ? "letter" : "letter ours"}>
      <details open={open && !isCanceled}>
        <summary>
          <strong class={name === undefined ? "address" : "cut"} dir="auto">
            {name ?? email}
          </strong>
          {name === undefined ? null : <span class="quiet address">{email}</span>}
          <span class="cut quiet readers">to {addresses.to.map(({ email }) => email).join(", ")}</span>
          {testMode === true ? <span class="tag">test</span> : null}
          {isCanceled ? (
            <Dot tone="quiet" word="Taken back" title="It was canceled before it left." />
          ) : direction === "outbound" ? (
            <Status status={status} captured={capturesTo(addresses.to.map(({ email }) => email))} />
          ) : null}
          <RelativeTime at={createdAt} />
        </summary>
        <LetterBody message={message} />
        {open && direction === "inbound" ? <Found id={id} onReplied={onReplied} /> : null}
        <p class="letter-foot">
          <AuthLine message={message} />
          <span class="grow" />
          <span class="letter-links">
            {can("threads:reply") ? (
              <button type="button" class="link" onClick={() => onWrite({ mode: "reply", messageId: id })}>
                Reply
              </button>
            ) : null}
            {can("emails:send") ? (
              <button type="button" class="link" onClick={() => onWrite({ mode: "forward", messageId: id })}>
                Forward
              </button>
            ) : null}
            <a href={`/messages/${id}?tab=source`}>Source</a>
            <a href={`/messages/${id}`}>Details</a>
          </span>
        </p>
      </details>
    </li>
  );
}

/**
 * Shows the findings in a message: codes to copy, links, an invitation. The API's threads do not include them, so this reads
 * the message itself.
 */
function Found({ id, onReplied }: { id: string; onReplied: () => void }) {
  const message = useResource(`message ${id}`, () => readMessage(id));
  const found = message.value.value;
  if (found === null) return null;
  return (
    <>
      <Invitation message={found} onReplied={onReplied} />
      <CodesAndLinks message={found} />
    </>
  );
}

function CodesAndLinks({ message: { id, codes = [], links = [] } }: { message: Message }) {
  if (codes.length + links.length === 0) return null;
  return (
    <p class="letter-files">
      {codes.map((code) => (
        <span key={code} class="chip">
          <code>{code}</code>
          <CopyButton text={code} what="code" />
        </span>
      ))}
      {links.length === 0 ? null : (
        <a class="chip" href={`/messages/${id}?tab=links`}>
          {counted(links.length, "link")}
        </a>
      )}
    </p>
  );
}

/** Characters of a message that a conversation shows. Its own page has more. */
const SHOWN_CHARS = 20_000;

type View = "reply" | "text" | "html";

function LetterBody({ message }: { message: Message }) {
  const { id, html, text, replyText, subject, attachments } = message;
  const short = replyText ?? null;
  const first: View =
    short !== null && short !== "" ? "reply" : text !== null || html === null ? "text" : "html";
  const view = useSignal<View>(first);
  const hasQuote = short !== null && text !== null && short.trim() !== text.trim();
  const shown = view.value === "reply" ? short : text;
  return (
    <div class="letter-body">
      {view.value === "html" ? (
        <Preview messageId={id} title={`Html of ${subject}`} small />
      ) : (
        <pre class="text" dir="auto">
          {shown?.slice(0, SHOWN_CHARS) ?? "(no text)"}
        </pre>
      )}
      <UnreadParts message={message} />
      {(shown?.length ?? 0) > SHOWN_CHARS && view.value !== "html" ? (
        <p>
          <a href={`/messages/${id}?tab=text`}>Read all of it</a>
        </p>
      ) : null}
      <p class="letter-views">
        {hasQuote && view.value !== "html" ? (
          <button
            type="button"
            class="button bare small"
            onClick={() => (view.value = view.value === "reply" ? "text" : "reply")}
          >
            {view.value === "reply" ? "Show quoted text" : "Hide quoted text"}
          </button>
        ) : null}
        {html === null ? null : (
          <button
            type="button"
            class="button bare small"
            onClick={() =>
              (view.value = view.value === "html" ? (first === "html" ? "text" : first) : "html")
            }
          >
            {view.value === "html" ? "Show as text" : "Show as html"}
          </button>
        )}
      </p>
      {attachments.length === 0 ? null : (
        <ul class="letter-files">
          {attachments.map((file) => (
            <li key={file.id}>
              <a
                class="chip"
                href={browserPath(
                  `/v1/emails/${encodeURIComponent(id)}/attachments/${encodeURIComponent(file.id)}`,
                )}
                download={file.filename}
              >
                <bdi>{file.filename}</bdi> <span class="quiet">{sizeText(file.size)}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The authentication results in one line; all of it is on the message's own page. */
function AuthLine({ message: { id, auth, direction, sender } }: { message: Message }) {
  if (direction === "outbound" || auth === undefined || auth === null) return null;
  const dkim = auth.dkim?.find(({ result }) => result === "pass")?.result ?? auth.dkim?.[0]?.result ?? "none";
  const results = { SPF: auth.spf?.result ?? "none", DKIM: dkim, DMARC: auth.dmarc?.result ?? "none" };
  return (
    <a class="auth-line" href={`/messages/${id}?tab=auth`}>
      {sender && !sender.authenticated && (
        <span class="tone-bad">Not proven: anyone could have written this address</span>
      )}
      {sender?.known && <span class="tone-good">Known sender</span>}
      {Object.entries(results).map(([name, result]) => (
        <span
          key={name}
          class={result === "pass" ? "tone-good" : result === "fail" ? "tone-bad" : "tone-quiet"}
        >
          <span class="dot" aria-hidden="true" />
          {name} {result}
        </span>
      ))}
    </a>
  );
}
