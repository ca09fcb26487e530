import type { ComponentChildren } from "preact";
import type { Tone } from "../words/status.ts";
import { LocalTime } from "./time.tsx";

export interface Moment {
  key: string;
  at: string;
  tone: Tone;
  word: string;
  /** What happened, in a sentence. */
  text?: ComponentChildren;
}

/** What happened, oldest first. */
export function Timeline({ label, moments }: { label: string; moments: readonly Moment[] }) {
  return (
    <ol class="timeline" aria-label={label}>
      {moments.map((moment) => (
        <li key={moment.key} class={`tone-${moment.tone}`}>
          <span class="dot" aria-hidden="true" />
          <LocalTime at={moment.at} short />
          <strong>{moment.word}</strong>
          {moment.text === undefined ? null : <span class="moment-text">{moment.text}</span>}
        </li>
      ))}
    </ol>
  );
}
