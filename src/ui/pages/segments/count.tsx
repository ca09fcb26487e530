import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post } from "../../api/client.ts";
import { type ApiError, asApiError } from "../../api/error.ts";
import type { SegmentCount } from "../../api/types.ts";
import { after } from "../../browser/clock.ts";
import { counted } from "../../words/amounts.ts";
import type { Filter } from "../../words/filter.ts";

/** Counts one filter at a time, because a million contacts take a third of a second each. */
let last: Promise<unknown> = Promise.resolve();

function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
  const next = last.then(work, work);
  last = next.catch(() => {});
  return next;
}

interface Counting {
  found: Signal<SegmentCount | null>;
  error: Signal<ApiError | null>;
}

interface CountOptions {
  /** Milliseconds for which a changed filter must be left alone. */
  pauseMs?: number;
  /** True to count all contacts, although it may take longer than an estimate. */
  exact?: boolean;
}

/** Counts the contacts that pass a filter, again when it changes. Null: nothing is counted. */
export function useCount(filter: Filter | null, { pauseMs = 0, exact = false }: CountOptions = {}): Counting {
  const found = useSignal<SegmentCount | null>(null);
  const error = useSignal<ApiError | null>(null);
  const key = JSON.stringify(filter);
  useEffect(() => {
    error.value = null;
    if (filter === null) {
      found.value = null;
      return;
    }
    const stop = new AbortController();
    const { signal } = stop;
    const read = async () => {
      if (signal.aborted) return;
      try {
        const answer = await post<SegmentCount>("/v1/segments/count", { filter, exact }, { signal });
        if (!signal.aborted) found.value = answer;
      } catch (thrown) {
        if (signal.aborted) return;
        found.value = null;
        error.value = asApiError(thrown);
      }
    };
    const cancel = after(pauseMs, () => void inTurn(read));
    return () => {
      cancel();
      stop.abort();
    };
  }, [key]);
  return { found, error };
}

/** Returns the number of contacts, of an estimate two digits. */
function contactsText({ count, estimated }: SegmentCount): string {
  return estimated ? `about ${counted(Number(count.toPrecision(2)), "contact")}` : counted(count, "contact");
}

/** The number of contacts that pass a filter, in a row of a list. */
export function ContactCount({ filter }: { filter: Filter }) {
  const { found, error } = useCount(filter);
  const failed = error.value !== null;
  return (
    <span class="status" title={error.value?.message}>
      {found.value === null ? (failed ? "not counted" : "…") : contactsText(found.value)}
    </span>
  );
}

/** The number of contacts, with the newest of them. */
export function Sample({ found }: { found: SegmentCount }) {
  const { count, estimated, sample } = found;
  return (
    <>
      <strong>{contactsText(found)}</strong>
      {sample.length === 0 ? null : (
        <span class="quiet">
          {count > sample.length ? (estimated ? ", such as " : ", the newest of them ") : ": "}
          {sample.map(({ id, email }, at) => (
            <span key={id}>
              {at === 0 ? "" : ", "}
              <a href={`/contacts/${id}`}>{email}</a>
            </span>
          ))}
        </span>
      )}
    </>
  );
}
