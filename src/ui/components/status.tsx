import { AWAITING, eventWords, statusWords, type Tone } from "../words/status.ts";

interface DotProps {
  tone: Tone;
  word: string;
  /** Shown on hover. */
  title?: string | undefined;
}

/** A coloured dot with a word next to it, so that colour is never the only signal. */
export function Dot({ tone, word, title }: DotProps) {
  return (
    <span class={`status tone-${tone}`} title={title}>
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  );
}

interface StatusProps {
  status: string;
  direction?: "inbound" | "outbound";
  /** It waits until another key approves it. */
  awaitingApproval?: boolean | undefined;
  /** It is delivered only to this machine, which is in capture mode. */
  captured?: boolean;
}

/** The status of a message or recipient. */
export function Status({ status, direction, awaitingApproval, captured }: StatusProps) {
  const { tone, word, means } =
    awaitingApproval === true ? AWAITING : statusWords(status, direction, captured);
  return <Dot tone={tone} word={word} title={means} />;
}

/** The type of an event. @param captured true if it is the delivery of a captured message */
export function EventStatus({ type, captured = false }: { type: string; captured?: boolean }) {
  const { tone, word, means } = eventWords(type, captured);
  return <Dot tone={tone} word={word} title={means} />;
}
