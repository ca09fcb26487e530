import { useSignal } from "@preact/signals";
import { get, post } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Health } from "../../api/types.ts";
import { after } from "../../browser/clock.ts";
import { useTask } from "../../controls/task.ts";
import { Advice } from "../../controls/advice.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { counted } from "../../words/amounts.ts";
import { capitalized } from "../../words/case.ts";
import type { Tone } from "../../words/status.ts";

const WORDS = { ok: "Fine", warn: "Warning", fail: "Broken" } as const;
const TONES: Readonly<Record<Health["status"], Tone>> = { ok: "good", warn: "late", fail: "bad" };
const ORDER = ["fail", "warn", "ok"];

/** The service gives the same results for this time, ms. A check after a fix must be later. */
const FRESH_MS = 10_000;

/**
 * The checks of the installation: what is wrong with its fix first, and the rest on request.
 * @param onFixed called when a button has fixed something
 */
export function HealthPanel({ onFixed }: { onFixed: () => void }) {
  const withDns = useSignal(false);
  const query = withDns.value ? { dns: true } : {};
  const health = useResource(withDns.value ? "health and dns" : "health", () =>
    get<Health>("/v1/health", query, { account: true }),
  );
  const all = useSignal(false);
  const fixed = () => {
    onFixed();
    after(FRESH_MS, health.reload);
  };
  const checks = (health.value.value?.checks ?? []).toSorted(
    (a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status),
  );
  const fine = checks.filter(({ status }) => status === "ok").length;
  const shown = all.value ? checks : checks.filter(({ status }) => status !== "ok");
  return (
    <section class="panel" aria-label="Health">
      <header class="panel-head">
        <h2>Health</h2>
        {health.value.value === null ? null : (
          <span class="quiet">
            checked <RelativeTime at={health.value.value.checkedAt} />{" "}
            <button
              type="button"
              class="button small"
              disabled={health.loading.value}
              onClick={health.reload}
            >
              Check again
            </button>{" "}
            {withDns.value ? null : (
              <button type="button" class="button small" onClick={() => (withDns.value = true)}>
                Check from outside, too
              </button>
            )}
          </span>
        )}
      </header>
      <Problem error={health.error.value} onRetry={health.reload} />
      <ul class="checks">
        {shown.map(({ name, status, message, fix, action }) => (
          <li key={name}>
            <Dot tone={TONES[status]} word={WORDS[status]} />
            <div>
              <p>
                <strong>{capitalized(name)}:</strong> {message}
              </p>
              {fix === undefined ? null : (
                <p class="quiet">
                  <Advice text={fix} />
                </p>
              )}
              {action === undefined ? null : <FixButton {...action} onFixed={fixed} />}
            </div>
          </li>
        ))}
      </ul>
      {fine === 0 ? null : (
        <button
          type="button"
          class="button small"
          aria-expanded={all.value}
          onClick={() => (all.value = !all.value)}
        >
          {all.value
            ? "Hide what is fine"
            : `Show ${counted(fine, "check")} that ${fine === 1 ? "is" : "are"} fine`}
        </button>
      )}
    </section>
  );
}

interface FixProps {
  label: string;
  path: string;
  onFixed: () => void;
}

/** A button that sends the request which fixes a check. */
function FixButton({ label, path, onFixed }: FixProps) {
  const task = useTask();
  const done = useSignal(false);
  const fix = () =>
    task.run(async () => {
      await post(path, undefined, { account: true });
      done.value = true;
      onFixed();
    });
  if (done.value) return <p role="status">Done. The next check shows it.</p>;
  return (
    <>
      <Problem error={task.error.value} />
      <button type="button" class="button small" disabled={task.busy.value} onClick={() => void fix()}>
        {label}
      </button>
    </>
  );
}
