import { signal } from "@preact/signals";
import { isSeen } from "../api/live.ts";
import { every, now } from "../browser/clock.ts";
import { clockTime, localTime, shortAge, utcTime } from "../words/time.ts";

/** How often relative times are redrawn, in ms. */
const TICK_MS = 5_000;
const tick = signal(0);

/** Begins to draw relative times again as they pass. */
export function startTicking(): void {
  every(TICK_MS, () => {
    if (isSeen()) tick.value++;
  });
}

/** Makes the text that is shown on hover. A list has hundreds of times that are never pointed at. */
function explain({ currentTarget: time }: { currentTarget: HTMLTimeElement }): void {
  const at = Date.parse(time.dateTime);
  time.title = `${localTime(at)}\n${utcTime(at)}`;
}

/** How long ago a time is. The local time and UTC are shown on hover. */
export function RelativeTime({ at }: { at: string }) {
  tick.value;
  const time = Date.parse(at);
  return (
    <time class="age" dateTime={at} onPointerEnter={explain}>
      {shortAge(time, now())}
    </time>
  );
}

/** A local time, as a whole or only its time of day. UTC is shown on hover. */
export function LocalTime({ at, short = false }: { at: string; short?: boolean }) {
  const time = Date.parse(at);
  return (
    <time dateTime={at} onPointerEnter={explain}>
      {short ? clockTime(time) : localTime(time)}
    </time>
  );
}
