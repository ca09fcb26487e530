import { useLayoutEffect } from "preact/hooks";
import { type Signal, useSignal } from "@preact/signals";
import { type ApiError, asApiError } from "../api/error.ts";

/** A change that a person asked for, such as the submit of a form. */
export interface Task {
  busy: Signal<boolean>;
  error: Signal<ApiError | null>;
  /** Names of the fields on the page that show their own errors. */
  fields: Signal<readonly string[]>;
  /** Runs it. Returns whether it succeeded. While it runs, a second call does nothing. */
  run(work: () => Promise<void>): Promise<boolean>;
}

/** Returns a task of the component. */
export function useTask(): Task {
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const fields = useSignal<readonly string[]>([]);
  const run = async (work: () => Promise<void>) => {
    if (busy.value) return false;
    busy.value = true;
    error.value = null;
    try {
      await work();
      return true;
    } catch (thrown) {
      error.value = asApiError(thrown);
      return false;
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, fields, run };
}

/** Tells the task that a field on the page shows the errors of that name, so that its form does not. */
export function useOwnErrors(task: Task | undefined, name: string): void {
  const fields = task?.fields;
  useLayoutEffect(() => {
    if (fields === undefined) return;
    fields.value = [...fields.peek(), name];
    return () => {
      fields.value = fields.peek().filter((one) => one !== name);
    };
  }, [fields, name]);
}
