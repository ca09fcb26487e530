import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Broadcast, BroadcastCheck } from "../../api/types.ts";
import { CheckBox } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { Problem } from "../../controls/problem.tsx";
import { LocalTime } from "../../components/time.tsx";
import { now } from "../../browser/clock.ts";
import { useAudience, useSegments } from "../../state/audience.ts";
import { mailboxText } from "../../words/addresses.ts";
import { counted, countText } from "../../words/amounts.ts";
import { lackText } from "../messages/check.tsx";
import { useCount } from "../segments/count.tsx";
import { planText } from "./ab-words.ts";
import { readersFilter } from "./words.ts";

interface SendProps {
  broadcast: Broadcast;
  path: string;
  onSent: (broadcast: Broadcast) => void;
  onClose: () => void;
}

/** Says what will happen, and sends the broadcast. */
export function SendDialog({ broadcast, path, onSent, onClose }: SendProps) {
  const { name, from, topicId, segmentId, ratePerHour, scheduledAt, abTest } = broadcast;
  const segments = useSegments().value.value;
  const segment = segments?.find(({ id }) => id === segmentId);
  const topic = useAudience().value.value?.topics.find(({ id }) => id === topicId);
  const isKnown = segmentId === null || segment !== undefined;
  const { found, error } = useCount(isKnown ? readersFilter(topicId, segment ?? null) : null, {
    exact: true,
  });
  const check = useResource(`check ${broadcast.id} ${broadcast.updatedAt}`, () =>
    post<BroadcastCheck>(`${path}/check`),
  );
  const missing = check.value.value?.missing ?? [];
  const allows = useSignal(false);
  const isLater = scheduledAt !== null && Date.parse(scheduledAt) > now();
  const send = async () => {
    onSent(await post<Broadcast>(`${path}/send`, { allowMissing: allows.value }));
    onClose();
  };
  return (
    <FormDialog
      title={`Send ${name}?`}
      verb={isLater ? "Schedule broadcast" : "Send broadcast"}
      keep="Go on writing"
      incomplete={missing.length > 0 && !allows.value}
      onSubmit={send}
      onClose={onClose}
    >
      <p role="status">
        <strong>{found.value === null ? "Counting…" : counted(found.value.count, "contact")}</strong>{" "}
        {segmentId === null ? "" : `of the segment “${segment?.name ?? segmentId}” `}
        would get it now, because they get “{topic?.name ?? topicId}”. Addresses that are suppressed are left
        out.
      </p>
      <Problem error={error.value} />
      <p>
        It comes from {mailboxText(from)} and begins{" "}
        {isLater && scheduledAt !== null ? (
          <>
            at <LocalTime at={scheduledAt} />
          </>
        ) : (
          "now"
        )}
        {ratePerHour === null ? "" : `, with at most ${countText(ratePerHour)} messages an hour`}. You can
        pause or cancel it until the last message has left.
      </p>
      {abTest === null ? null : <p>{planText(abTest)}</p>}
      {missing.length === 0 ? null : (
        <>
          <p class="field-error">{missing.map(lackText).join(" ")}</p>
          <CheckBox label="Send it to them too" checked={allows} />
        </>
      )}
    </FormDialog>
  );
}
