import type { Suppression } from "../../api/types.ts";
import { CopyButton } from "../../controls/copy.tsx";
import { Detail } from "../../components/detail.tsx";
import { Fact } from "../../components/fact.tsx";
import { Problem } from "../../controls/problem.tsx";
import { Dot } from "../../components/status.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can } from "../../state/session.ts";
import { suppressionWords } from "../../words/suppression.ts";
import { Lift, useSuppression } from "./lift.tsx";

interface DetailProps {
  email: string;
  onClose: () => void;
  onLifted: (entry: Suppression) => void;
}

/** Why an address gets no mail. */
export function SuppressionDetail({ email, onClose, onLifted }: DetailProps) {
  const list = useSuppression(email);
  const answer = list.value.value;
  const entry = answer?.data[0] ?? null;
  return (
    <Detail
      name="Suppression"
      id={entry?.id ?? null}
      busy={list.loading.value}
      onClose={onClose}
      actions={
        entry === null || !can("suppressions:write") ? null : (
          <Lift entry={entry} onLifted={() => onLifted(entry)} />
        )
      }
    >
      <Problem error={list.error.value} onRetry={list.reload} />
      {entry !== null ? (
        <Body entry={entry} />
      ) : answer === null ? null : (
        <p class="quiet">{email} is not suppressed. Mail to it is sent.</p>
      )}
    </Detail>
  );
}

function Body({ entry }: { entry: Suppression }) {
  const { email, reason, bounceType, messageId, note, expiresAt, createdAt } = entry;
  const { word, tone, means, next } = suppressionWords(reason);
  return (
    <>
      <div class="detail-head">
        <h2>{email}</h2>
        <p class="answer">
          <Dot tone={tone} word={word} />
          <span>{means}</span>
        </p>
        <dl class="facts">
          <Fact
            name="Address"
            value={
              <>
                <span class="address">{email}</span> <CopyButton text={email} what="address" />
              </>
            }
          />
          <Fact name="Added" value={<LocalTime at={createdAt} />} />
          <Fact name="Ends" value={expiresAt === null ? "When it is lifted" : <LocalTime at={expiresAt} />} />
          {bounceType === null ? null : <Fact name="Bounce" value={bounceType} />}
          {note === null ? null : <Fact name="Note" value={note} />}
          {messageId === null ? null : (
            <Fact name="Message" value={<a href={`/messages/${messageId}`}>Open the message</a>} />
          )}
        </dl>
      </div>
      <p>{next}</p>
    </>
  );
}
