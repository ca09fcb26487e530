import { type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { after } from "../browser/clock.ts";
import { isDrawn, NotKnown } from "./client.ts";
import { type ApiError, asApiError } from "./error.ts";

/** Something that is read from the API, kept while it is read again. */
export interface Resource<Value> {
  value: Signal<Value | null>;
  error: Signal<ApiError | null>;
  loading: Signal<boolean>;
  /** Reads it, unless its value came with the page. */
  open(): void;
  /** Reads it again. The old value stays until the answer is there. */
  reload(): void;
  /** Sets the value that the answer to a change returned. */
  set(value: Value): void;
}

/**
 * Maximum number of resources and lists that are remembered, so that Back shows them at once. The oldest are
 * forgotten.
 */
const MAX_REMEMBERED = 60;
const remembered = new Map<string, Remembered>();

/** Something that is read. */
export interface Remembered {
  /** Reads it for a page that the server draws. Resolves when it is read, or when there is no answer for it. */
  draw(): Promise<void>;
  /** Returns what it has read, or null. */
  snapshot(): unknown;
}

/** The key of the id of the newest event before the values were read that came with the page. */
export const NEWEST_EVENT = "newest event";

/** Milliseconds for which values that came with the page are new enough. */
const FRESH_MS = 1_000;
let brought = new Map<string, unknown>();

/** Takes up what the page had read when the server drew it. */
export function bring(values: Readonly<Record<string, unknown>>): void {
  brought = new Map(Object.entries(values));
  after(FRESH_MS, () => brought.clear());
}

/** Returns what the page has read, by its keys. */
export function snapshots(): Record<string, unknown> {
  const values = [...remembered].map(([key, one]) => [key, one.snapshot()] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== null));
}

/** Forgets everything that was read, because the project or the session has changed. */
export function forgetAll(): void {
  remembered.clear();
  brought.clear();
}

/** Puts the fields of an answer to a change into a remembered value, even while no page shows it. */
export function amend<Value extends object>(key: string, fields: Partial<Value>): void {
  const known = remembered.get(key) as (Resource<Value> & Remembered) | undefined;
  const value = known?.value.peek() ?? null;
  if (value !== null) known?.set({ ...value, ...fields });
}

/** Returns a value that came with the page, once; null if there is none. */
export function takeBrought(key: string): unknown {
  const value = brought.get(key) ?? null;
  brought.delete(key);
  return value;
}

const drawn = new WeakSet<Remembered>();

/** If the server draws the page, suspends the component until what it shows has been read. */
export function awaitDrawn(one: Remembered): void {
  if (!isDrawn() || drawn.has(one)) return;
  throw one.draw().then(() => drawn.add(one));
}

/** Returns what is remembered under the key, or makes it, of the value that came with the page if there is one. */
export function remember<Value extends Remembered>(key: string, make: (brought: unknown) => Value): Value {
  const known = remembered.get(key) as Value | undefined;
  const came = takeBrought(key);
  const value = known ?? make(came);
  remembered.delete(key);
  remembered.set(key, value);
  for (const oldest of remembered.keys()) {
    if (remembered.size <= MAX_REMEMBERED) break;
    remembered.delete(oldest);
  }
  return value;
}

function createResource<Value>(
  load: () => Promise<Value>,
  brought: Value | null,
): Resource<Value> & Remembered {
  const value = signal<Value | null>(brought);
  let isNew = brought !== null;
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  let again = false;
  /** True while components that show it open it in one go. */
  let isOpening = false;
  const reload = () => {
    // A pending answer may be older than the change, so the resource is read once more after it.
    if (loading.value) again = true;
    else void run();
  };
  const run = async () => {
    loading.value = true;
    try {
      value.value = await load();
      error.value = null;
    } catch (thrown) {
      if (thrown instanceof NotKnown) return;
      error.value = asApiError(thrown);
    }
    loading.value = false;
    if (again) {
      again = false;
      reload();
    }
  };
  return {
    value,
    error,
    loading,
    open: () => {
      if (isOpening) return;
      isOpening = true;
      queueMicrotask(() => {
        isOpening = false;
      });
      if (!isNew) reload();
      isNew = false;
    },
    reload,
    draw: run,
    snapshot: () => value.peek(),
    set: (next) => {
      value.value = next;
      error.value = null;
      if (loading.peek()) reload();
    },
  };
}

/** Returns the resource of that key, and reads it when the component appears or the key changes. */
export function useResource<Value>(key: string, load: () => Promise<Value>): Resource<Value> {
  // The key names the thing that `load` reads.
  const resource = useMemo(
    () => remember(key, (brought) => createResource(load, brought as Value | null)),
    [key],
  );
  awaitDrawn(resource);
  // Before the page is painted, so that the answer comes sooner.
  useLayoutEffect(() => resource.open(), [resource]);
  return resource;
}

/** Reads something again when a fact changes that its answer depends on. A component that has just appeared reads by itself. */
export function useReloadAfter(fact: string | number, reload: () => void): void {
  const known = useRef(fact);
  useEffect(() => {
    if (known.current !== fact) reload();
    known.current = fact;
  }, [fact]);
}
