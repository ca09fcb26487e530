import { useSignal } from "@preact/signals";
import type { Message, MessageEvent, Recipient } from "../../api/types.ts";
import { Status } from "../../components/status.tsx";
import { type Moment, Timeline } from "../../components/timeline.tsx";
import { LocalTime } from "../../components/time.tsx";
import { detailsOf, isCaptured, recipientAnswer } from "../../words/answer.ts";
import { counted } from "../../words/amounts.ts";
import { eventWords } from "../../words/status.ts";

/** Recipients that are shown at first. */
const SHOWN = 10;

/** The events of each recipient. */
export function Recipients({ message }: { message: Message }) {
  const all = useSignal(false);
  const { recipients, events } = message;
  const [only] = recipients;
  if (recipients.length <= 1)
    return (
      <section class="detail-part" aria-label="Timeline">
        <Timeline label={`Events of ${only?.email ?? "the message"}`} moments={momentsOf(events)} />
      </section>
    );
  const shown = all.value ? recipients : recipients.slice(0, SHOWN);
  return (
    <section class="detail-part" aria-label="Recipients">
      {shown.map((recipient, index) => (
        <RecipientRow key={recipient.email} message={message} recipient={recipient} open={index === 0} />
      ))}
      {shown.length < recipients.length ? (
        <button type="button" class="button small" onClick={() => (all.value = true)}>
          Show all {counted(recipients.length, "recipient")}
        </button>
      ) : null}
    </section>
  );
}

interface RowProps {
  message: Message;
  recipient: Recipient;
  open: boolean;
}

function RecipientRow({ message, recipient, open }: RowProps) {
  const { email, kind, status } = recipient;
  const events = message.events.filter((event) => event.email === email || event.email === null);
  return (
    <details class="recipient" open={open}>
      <summary>
        <Status status={status} captured={isCaptured(recipient)} />
        <span class="cut">{email}</span>
        {kind === "to" ? null : <span class="tag">{kind}</span>}
      </summary>
      <p class="quiet">{recipientAnswer(message, recipient)}</p>
      <Timeline label={`Events of ${email}`} moments={momentsOf(events)} />
    </details>
  );
}

/** Events of one recipient that are shown, the newest ones. A mailing list may open a message thousands of times. */
const SHOWN_EVENTS = 200;

function momentsOf(events: readonly MessageEvent[]): Moment[] {
  return events.slice(-SHOWN_EVENTS).map((event) => {
    const { word, tone } = eventWords(event.type, event.type === "delivery" && isCaptured(detailsOf(event)));
    return { key: event.id, at: event.createdAt, tone, word, text: <EventText event={event} /> };
  });
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** The details of an event that a person wants to see at a glance. */
function EventText({ event }: { event: MessageEvent }) {
  const details = detailsOf(event);
  const parts = [
    typeof details.attempt === "number" ? `try ${details.attempt}` : null,
    text(details.mx),
    tlsText(details.tls),
    text(details.type) === null ? null : `${details.type} bounce`,
    text(details.reason) ?? text(details.category),
    text(details.url),
    details.machine === true ? "by a machine" : null,
  ].filter((part) => part !== null);
  const next = text(details.nextAttemptAt);
  const reply = text(details.response) ?? text(details.diagnostic);
  return (
    <>
      {parts.join(" · ")}
      {next === null ? null : (
        <>
          {" "}
          · next try at <LocalTime at={next} short />
        </>
      )}
      {reply === null ? null : <code class="moment-reply">{reply}</code>}
    </>
  );
}

function tlsText(tls: unknown): string | null {
  const version = text(tls);
  return version === null ? null : version.replace(/^TLSv/, "TLS ");
}
