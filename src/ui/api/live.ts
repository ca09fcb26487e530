import { type Signal, signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useEffect } from "../effects.ts";
import { after, every, now, throttle } from "../clock.ts";
import { EVENT_TYPES } from "../words/server-lists.ts";
import { browserPath } from "./client.ts";
import { waitAfter } from "./pace.ts";
import type { LiveEvent } from "./types.ts";

/** Without a stream, pages look again so often. */
const POLL_MS = 4_000;
/** Waits before a stream that was refused is tried again. */
const RETRY_MS = 15_000;

/** `live`: events arrive. `polling`: the stream is not there, so pages ask again every few seconds. */
export type LiveState = "connecting" | "live" | "polling";
/** The state of the one stream of this tab. */
export const liveState: Signal<LiveState> = signal<LiveState>("connecting");

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

function tell(event: LiveEvent | null): void {
  for (const listener of [...listeners]) listener(event);
}

/** Opens the stream of the chosen project. Returns a function that closes it. */
export function openStream(): () => void {
  let close = connect();
  let stopPolling = () => {};
  let stopRetry = () => {};
  let opened = false;
  const poll = () => {
    stopPolling();
    stopRetry();
    liveState.value = "polling";
    stopPolling = every(POLL_MS, () => document.visibilityState === "visible" && tell(null));
    stopRetry = after(RETRY_MS, () => {
      stopPolling();
      close = connect();
    });
  };
  function connect(): () => void {
    const source = new EventSource(browserPath("/v1/events/stream"));
    liveState.value = liveState.value === "polling" ? "polling" : "connecting";
    const onConnected = () => {
      stopPolling();
      liveState.value = "live";
      // The browser resumes by the id of the last event, if there was one and it is not too old.
      if (opened) tell(null);
      opened = true;
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) poll();
      else liveState.value = "connecting";
    };
    for (const type of EVENT_TYPES)
      source.addEventListener(type, (raw: Event) => {
        // The browser's own event of a new connection is called `open` too, like that of an opened message.
        if (!(raw instanceof MessageEvent)) return onConnected();
        const data = JSON.parse(raw.data) as Omit<LiveEvent, "id">;
        tell({ ...data, id: raw.lastEventId, type } as LiveEvent);
      });
    return () => source.close();
  }
  return () => {
    stopPolling();
    stopRetry();
    close();
    liveState.value = "connecting";
  };
}

/**
 * Reads something again when an event concerns it, at most once in so many milliseconds. A tab that is hidden waits
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
    let stale = false;
    const visible = () => document.visibilityState === "visible";
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
      if (event !== null && !latest.current.concerns(event)) return;
      events++;
      if (visible()) run();
      else stale = true;
    });
    const onSeen = () => {
      if (!stale || !visible()) return;
      stale = false;
      run();
    };
    document.addEventListener("visibilitychange", onSeen);
    return () => {
      document.removeEventListener("visibilitychange", onSeen);
      stop();
      run.cancel();
    };
  }, [ms]);
}
