import { type Signal, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { now, throttle } from "../browser/clock.ts";
import { waitAfter } from "./pace.ts";
import type { LiveEvent } from "./types.ts";

/**
 * `live`: events arrive. Otherwise pages read again every few seconds, because the stream was refused (`polling`) or there are too
 * many events to follow (`busy`).
 */
export type LiveState = "connecting" | "live" | "polling" | "busy";
/** The state of the one stream of this tab. */
export const liveState: Signal<LiveState> = signal<LiveState>("connecting");

/** Counts the drafts that programs have saved while the stream was open. */
export const draftsSaved: Signal<number> = signal(0);

/** Called with an event, or with null if the page should look again because events may have been missed. */
type Listener = (event: LiveEvent | null) => void;
const listeners = new Set<Listener>();

/** Calls the function for every event of the project. Returns a function that ends this. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** Calls the listeners. */
export function tell(event: LiveEvent | null): void {
  for (const listener of [...listeners]) listener(event);
}

/** Returns whether the tab is visible. */
export function isSeen(): boolean {
  return document.visibilityState === "visible";
}

/**
 * Reads something again when an event concerns it, at most once per interval. A tab that is hidden reads nothing
 * until it is seen, so that forgotten tabs cost the service nothing.
 */
export function useLiveReload(
  reload: () => void,
  ms: number,
  concerns: (event: LiveEvent) => boolean = () => true,
): void {
  const latest = useRef({ reload, concerns });
  latest.current = { reload, concerns };
  useEffect(() => {
    let events = 0;
    let readAt = now();
    let wait = ms;
    const run = throttle(
      () => wait,
      () => {
        wait = waitAfter(events, now() - readAt, ms);
        readAt = now();
        events = 0;
        latest.current.reload();
      },
    );
    const stop = listen((event) => {
      // When a tab becomes visible again, the stream makes it look.
      if (!isSeen() || (event !== null && !latest.current.concerns(event))) return;
      events++;
      run();
    });
    return () => {
      stop();
      run.cancel();
    };
  }, [ms]);
}
