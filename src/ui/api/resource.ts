import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { type ApiError, asApiError } from "./error.ts";

/** Something that is read from the API, kept while it is read again. */
export interface Resource<Value> {
  value: Signal<Value | null>;
  error: Signal<ApiError | null>;
  loading: Signal<boolean>;
  /** Reads it again. The old value stays until the answer is there. */
  reload(): void;
  /** Puts in a value that an answer to a change has given. */
  set(value: Value): void;
}

/** Resources and lists that are remembered, so that Back shows them at once. The oldest are forgotten. */
const MAX_REMEMBERED = 60;
const remembered = new Map<string, unknown>();

/** Forgets everything that was read, because the project or the session has changed. */
export function forgetAll(): void {
  remembered.clear();
}

/** Returns what is remembered under the key, or makes it. */
export function remember<Value>(key: string, make: () => Value): Value {
  const known = remembered.get(key) as Value | undefined;
  const value = known ?? make();
  remembered.delete(key);
  remembered.set(key, value);
  for (const oldest of remembered.keys()) {
    if (remembered.size <= MAX_REMEMBERED) break;
    remembered.delete(oldest);
  }
  return value;
}

function createResource<Value>(load: () => Promise<Value>): Resource<Value> {
  const value = signal<Value | null>(null);
  const error = signal<ApiError | null>(null);
  const loading = signal(false);
  let again = false;
  const reload = () => {
    // An answer that is under way may be older than the change, so the resource is read once more after it.
    if (loading.value) again = true;
    else void run();
  };
  const run = async () => {
    loading.value = true;
    try {
      value.value = await load();
      error.value = null;
    } catch (thrown) {
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
    reload,
    set: (next) => {
      value.value = next;
      error.value = null;
    },
  };
}

/** Returns the resource of that key, and reads it when the component appears or the key changes. */
export function useResource<Value>(key: string, load: () => Promise<Value>): Resource<Value> {
  // The key names the thing that `load` reads.
  const resource = useMemo(() => remember(key, () => createResource(load)), [key]);
  // Before the page is painted, so that the answer comes sooner.
  useLayoutEffect(() => resource.reload(), [resource]);
  return resource;
}
