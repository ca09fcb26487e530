import { Advice } from "../../controls/advice.tsx";
import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Message, Explanation } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { Fact } from "../../components/fact.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Status } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can } from "../../state/session.ts";
import { isCaptured, messageAnswer, localExplanation, TROUBLED } from "../../words/answer.ts";
import { sizeText } from "../../words/amounts.ts";
import { NowSuppressed } from "../suppressions/lift.tsx";
import { Actions } from "./actions.tsx";
import { Approval } from "./approval.tsx";
import { ContentTabs } from "./content.tsx";
import { Recipients } from "./recipients.tsx";
import { ApiError } from "../../api/error.ts";

/** Minimum time between reloads of the message while events arrive, ms. */
const REFRESH_MS = 150;

/** Reads a message. */
export function readMessage(id: string): Promise<Message> {
  return get<Message>(`/v1/emails/${encodeURIComponent(id)}`);
}

/** One message: the answer first, then what happened, then what it contains. */
export function MessageDetail({ id, onClose }: { id: string; onClose: () => void }) {
  const message = useResource(`message ${id}`, () => readMessage(id));
  useLiveReload(message.reload, REFRESH_MS, ({ messageId }) => messageId === id);
  const found = message.value.value;
  const actions =
    found === null ? null : (
      <>
        <Approval message={found} onChanged={message.reload} />
        <Actions message={found} onChanged={message.reload} />
      </>
    );
  return (
    <Detail name="Message" id={id} busy={message.loading.value} actions={actions} onClose={onClose}>
      <Problem error={message.error.value} onRetry={message.reload} />
      {found === null ? null : <Body message={found} />}
    </Detail>
  );
}

function Body({ message }: { message: Message }) {
  return (
    <>
      <Head message={message} />
      <Why message={message} />
      <Recipients message={message} />
      <ContentTabs message={message} />
    </>
  );
}

function Head({ message }: { message: Message }) {
  const { subject, status, direction, addresses, createdAt, scheduledAt, size, tags, testMode } = message;
  return (
    <div class="detail-head">
      <h2 title={subject} dir="auto">
        {subject === "" ? "(no subject)" : subject}
      </h2>
      <p class="answer" role="status">
        <Status
          status={status}
          direction={direction}
          awaitingApproval={message.awaitingApproval}
          captured={message.recipients.some(isCaptured)}
        />
        <span>{messageAnswer(message)}</span>
        {testMode === true ? <span class="tag">test</span> : null}
      </p>
      <dl class="facts">
        <Fact name="From" value={<Address {...addresses.from} />} />
        <Addresses name="To" list={addresses.to} />
        <Addresses name="Cc" list={addresses.cc} />
        <Addresses name="Bcc" list={addresses.bcc} />
        <Addresses name="Reply to" list={addresses.replyTo} />
        <Fact
          name={direction === "inbound" ? "Received" : "Created"}
          value={
            <>
              <LocalTime at={createdAt} /> <span class="quiet">{sizeText(size)}</span>
            </>
          }
        />
        {scheduledAt === null ? null : <Fact name="Scheduled" value={<LocalTime at={scheduledAt} />} />}
        {message.threadId === null ? null : (
          <Fact name="Thread" value={<a href={`/threads/${message.threadId}`}>Open the conversation</a>} />
        )}
        {direction === "inbound" && can("inboxes:read") ? <Rules message={message} /> : null}
        {message.templateId === null ? null : (
          <Fact
            name="Template"
            value={<a href={`/templates/${message.templateId}`}>{message.templateId}</a>}
          />
        )}
        {tags.length === 0 ? null : (
          <Fact
            name="Tags"
            value={tags.map(({ name, value }) => (
              <a
                key={`${name}:${value}`}
                class="tag"
                href={`/messages?tag=${encodeURIComponent(`${name}:${value}`)}`}
              >
                {name}:{value}
              </a>
            ))}
          />
        )}
      </dl>
    </div>
  );
}

/** The rules that a received message met. */
function Rules({ message: { id, rules } }: { message: Message }) {
  return (
    <Fact
      name="Rules"
      value={
        <>
          {(rules ?? []).map((rule) => (
            <span key={rule.id}>{rule.name}</span>
          ))}
          <a href={`/rules?try=${id}`}>Try the rules</a>
        </>
      }
    />
  );
}

function Address({ email, name }: { email: string; name?: string }) {
  return (
    <span class="address">
      {name === undefined ? null : <span dir="auto">{name} </span>}
      <span class={name === undefined ? undefined : "quiet"}>{email}</span>
    </span>
  );
}

/** Addresses of one header field that are shown before the list is opened. */
const SHOWN_ADDRESSES = 8;

function Addresses({ name, list }: { name: string; list: Message["addresses"]["to"] }) {
  if (list.length === 0) return null;
  const shown = (some: typeof list) => some.map((address) => <Address key={address.email} {...address} />);
  const rest = list.slice(SHOWN_ADDRESSES);
  return (
    <Fact
      name={name}
      value={
        <>
          {shown(list.slice(0, SHOWN_ADDRESSES))}
          {rest.length === 0 ? null : (
            <details>
              <summary>and {rest.length} more</summary>
              {shown(rest)}
            </details>
          )}
        </>
      }
    />
  );
}

const WHO: Readonly<Record<string, string>> = {
  you: "You can fix this.",
  recipient: "Only the recipient can fix this.",
  provider: "The recipient's provider decides this.",
  us: "The operator of this service can fix this.",
};

/** Recipients that are explained. */
const SHOWN = 5;

async function explain(message: Message): Promise<Explanation | null> {
  try {
    return await get<Explanation>(`/v1/emails/${message.id}/explain`);
  } catch (thrown) {
    // A service without this operation answers 404.
    if (thrown instanceof ApiError && thrown.status === 404) return localExplanation(message);
    throw thrown;
  }
}

/** Statuses that the page explains. */
const EXPLAINED: ReadonlySet<string> = new Set([...TROUBLED, "queued"]);

/** Why a message did not arrive, or waits, in plain words with what to do. */
function Why({ message }: { message: Message }) {
  const wants = message.direction === "outbound" && EXPLAINED.has(message.status);
  return wants ? <Reasons key={`${message.id} ${message.status}`} message={message} /> : null;
}

function Reasons({ message }: { message: Message }) {
  const why = useResource(`why ${message.id} ${message.status}`, () => explain(message));
  const explanation = why.value.value ?? localExplanation(message);
  const recipients = (explanation?.recipients ?? []).filter(({ status }) => EXPLAINED.has(status));
  if (recipients.length === 0) return null;
  return (
    <section class="why" aria-label="Why">
      <h3>Why?</h3>
      {recipients.slice(0, SHOWN).map((one) => (
        <div key={one.email} class="why-one">
          {message.recipients.length > 1 ? <p class="strong">{one.email}</p> : null}
          {reasonsOf(message, one).map((sentence) => (
            <p key={sentence}>
              <Advice text={sentence} />
            </p>
          ))}
          <Reply text={replyOf(message, one.email)} />
          <NowSuppressed email={one.email} />
        </div>
      ))}
    </section>
  );
}

/**
 * Returns the sentences about one recipient, without what the answer above them has already said, and without the reply
 * below them, which the API quotes.
 */
function reasonsOf(
  message: Message,
  { email, what, why, next, who }: Explanation["recipients"][number],
): string[] {
  const said = message.recipients.length === 1 ? messageAnswer(message) : "";
  const cause = why.replace(` The reply: ${replyOf(message, email)}`, "");
  return [cause === "" ? what : cause, next, WHO[who] ?? ""].filter((text) => text !== "" && text !== said);
}

function replyOf({ recipients }: Message, email: string): string | null {
  return recipients.find((recipient) => recipient.email === email)?.diagnostic ?? null;
}

function Reply({ text }: { text: string | null }) {
  return text === null ? null : <pre class="reply">{text}</pre>;
}
