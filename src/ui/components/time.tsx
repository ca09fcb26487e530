import { signal } from "@preact/signals";
import { every, now } from "../clock.ts";
import { clockTime, localTime, shortAge, utcTime } from "../words/time.ts";

/** Relative times are drawn again so often. */
const TICK_MS = 5_000;
const tick = signal(0);

/** Begins to draw relative times again as they pass. */
export function startTicking(): void {
  every(TICK_MS, () => {
    if (document.visibilityState === "visible") tick.value++;
  });
}

function titleOf(at: number): string {
  return `${localTime(at)}\n${utcTime(at)}`;
}

/** How long ago a time is. The local time and UTC are shown on hover. */
export function RelativeTime({ at }: { at: string }) {
  tick.value;
  const time = Date.parse(at);
  return (
    <time class="age" dateTime={at} title={titleOf(time)}>
      {shortAge(time, now())}
    </time>
  );
}

/** A local time, as a whole or only its time of day. UTC is shown on hover. */
export function LocalTime({ at, short = false }: { at: string; short?: boolean }) {
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={titleOf(time)}>
      {short ? clockTime(time) : localTime(time)}
    </time>
  );
}
