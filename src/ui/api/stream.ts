import { after, now } from "../browser/clock.ts";
import { EVENT_TYPES } from "./server-lists.ts";
import { browserPath } from "./client.ts";
import { draftsSaved, isSeen, type LiveState, liveState, tell } from "./live.ts";
import { floodMeter } from "./pace.ts";
import { NEWEST_EVENT, takeBrought } from "./resource.ts";
import type { LiveEvent } from "./types.ts";

/** Waits before the stream is tried again, and pages look again, after it was refused, or left because of too many events. */
const REFUSED_MS = 4_000;
const BUSY_MS = 10_000;
/** Time in which fewer than BURST_AFTER_FLOOD events show that there are no longer too many. */
const TRIAL_MS = 500;
/** Events that may come at once, and when the stream is tried again after too many. */
const BURST = 1_000;
const BURST_AFTER_FLOOD = 100;

/** Events of before that a page which shows each event begins with. */
const RECENT = 50;

/** Pages of this tab that show each event. */
let viewers = 0;
/** Opens or closes the stream as the tab now needs it; null while no project is chosen. */
let update: (() => void) | null = null;

/** Keeps the stream open for a page that shows each event. Returns a function that ends this. */
export function followEachEvent(): () => void {
  viewers++;
  update?.();
  return () => {
    viewers--;
    update?.();
  };
}

/**
 * Keeps a stream of the chosen project open while the tab is seen or shows each event. All tabs of a browser share six connections
 * to a service. If there are too many events to follow, the pages look again from time to time. Returns a function that
 * closes the stream.
 */
export function openStream(): () => void {
  /** Closes the stream, or ends the wait for it; null if the tab needs none. */
  let leave: (() => void) | null = null;
  /** The stream begins with the events that are newer than the page. */
  let lastEventId = takeBrought(NEWEST_EVENT) as string | null;
  /** True if the pages may lack events of before the stream opens. */
  let isLate = lastEventId === null;
  /** True once the stream has brought the events of before. */
  let hasPast = false;
  const wait = (state: LiveState, ms: number) => {
    leave?.();
    liveState.value = state;
    isLate = true;
    tell(null);
    leave = after(ms, () => connect(null));
  };
  const connect = (from: string | null) => {
    const recent = viewers > 0 && from === null ? RECENT : null;
    hasPast ||= recent !== null;
    const source = new EventSource(
      browserPath("/v1/events/stream", { lastEventId: from, recent, drafts: true }),
    );
    /** True while it is not known if a flood has ended. */
    let isTrial = liveState.value === "busy" && viewers === 0;
    const isFlood = floodMeter(isTrial ? BURST_AFTER_FLOOD : BURST);
    let stopTrial = () => {};
    const goLive = () => {
      isTrial = false;
      liveState.value = "live";
      if (isLate) tell(null);
      isLate = true;
    };
    const onConnected = () => {
      if (isTrial) stopTrial = after(TRIAL_MS, goLive);
      else goLive();
    };
    const onEvent = (type: LiveEvent["type"], { data, lastEventId: id }: MessageEvent) => {
      lastEventId = id;
      if (!isTrial) tell({ ...(JSON.parse(data) as Omit<LiveEvent, "id">), id, type } as LiveEvent);
      if (isFlood(now()) && viewers === 0) wait("busy", BUSY_MS);
    };
    source.onerror = () => {
      isLate = true;
      if (source.readyState !== EventSource.CLOSED) liveState.value = "connecting";
      // The service no longer has the events after that one.
      else if (from !== null) connect(null);
      else wait("polling", REFUSED_MS);
    };
    for (const type of EVENT_TYPES)
      source.addEventListener(type, (raw: Event) => {
        // The browser's own event of a new connection is called `open` too, like that of an opened message.
        if (raw instanceof MessageEvent) onEvent(type, raw);
        else onConnected();
      });
    source.addEventListener("draft_saved", ({ lastEventId: id }: MessageEvent) => {
      lastEventId = id;
      draftsSaved.value++;
    });
    leave = () => {
      stopTrial();
      source.close();
    };
  };
  const close = () => {
    leave?.();
    leave = null;
    isLate = true;
    liveState.value = "connecting";
  };
  update = () => {
    const needed = isSeen() || viewers > 0;
    if (!needed) close();
    else if (leave === null || (viewers > 0 && (liveState.value === "busy" || !hasPast))) {
      leave?.();
      connect(viewers > 0 && !hasPast ? null : lastEventId);
    }
  };
  const onVisibility = () => {
    // A stream that stayed open brings no news of the time in which the pages read nothing.
    if (isSeen() && leave !== null) tell(null);
    update?.();
  };
  update();
  document.addEventListener("visibilitychange", onVisibility);
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    update = null;
    close();
  };
}
