import { useSignal } from "@preact/signals";
import { get, remove } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Page, Suppression } from "../../api/types.ts";
import { Confirm } from "../../controls/dialog.tsx";
import { can } from "../../state/session.ts";
import { suppressionWords } from "../../words/suppression.ts";

/** Returns the suppression of an address, as a list of one or none. */
export function useSuppression(email: string): Resource<Page<Suppression>> {
  return useResource(`suppression ${email}`, () => get<Page<Suppression>>("/v1/suppressions", { email }));
}

/** Says that an address is suppressed now, with the button that lifts it. Nothing if it is not. */
export function NowSuppressed({ email }: { email: string }) {
  return can("suppressions:read") ? <Suppressed email={email} /> : null;
}

function Suppressed({ email }: { email: string }) {
  const list = useSuppression(email);
  const entry = list.value.value?.data[0];
  if (entry === undefined) return null;
  return (
    <p class="suppressed">
      <span>
        <a href={`/suppressions/${encodeURIComponent(email)}`}>{email}</a> is suppressed now: it gets no more
        mail.
      </span>{" "}
      {can("suppressions:write") ? <Lift entry={entry} onLifted={list.reload} /> : null}
    </p>
  );
}

/** The button that lifts a suppression, after a question. */
export function Lift({ entry, onLifted }: { entry: Suppression; onLifted: () => void }) {
  const open = useSignal(false);
  const lift = async () => {
    await remove("/v1/suppressions", { email: entry.email });
    onLifted();
  };
  return (
    <>
      <button type="button" class="button small" onClick={() => (open.value = true)}>
        Lift the suppression
      </button>
      {open.value ? (
        <Confirm
          title={`Lift the suppression of ${entry.email}?`}
          verb="Lift suppression"
          onConfirm={lift}
          onClose={() => (open.value = false)}
        >
          <p>
            Mail to this address is sent again.{" "}
            {entry.reason === "manual" ? "" : suppressionWords(entry.reason).next}
          </p>
        </Confirm>
      ) : null}
    </>
  );
}
