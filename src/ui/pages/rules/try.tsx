import { useSignal } from "@preact/signals";
import { get, post } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { MessageSummary, Page, Rule, RuleTrial } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";
import { fieldValue, Form, SelectField } from "../../controls/form.tsx";
import { Dialog } from "../../controls/dialog.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useTask } from "../../controls/task.ts";
import { conditionText, joined, outcomeText } from "../../words/rules.ts";
import { namesOf, useNamed } from "./data.ts";

/** Newest received messages that the window offers. */
const OFFERED = 50;

interface TryProps {
  rules: readonly Rule[];
  /** The message that the URL names; null: the newest. */
  messageId: string | null;
  onClose: () => void;
}

/** Shows what the rules would do to a received message, and why. */
export function TryRules({ rules, messageId, onClose }: TryProps) {
  const messages = useResource("received messages", () =>
    get<Page<MessageSummary>>("/v1/emails", { direction: "inbound", limit: OFFERED }),
  );
  const chosen = useSignal(messageId ?? "");
  const trial = useSignal<RuleTrial | null>(null);
  const task = useTask();
  const found = messages.value.value?.data ?? [];
  const isListed = messageId === null || found.some(({ id }) => id === messageId);
  const emailId = chosen.value === "" ? (found[0]?.id ?? "") : chosen.value;
  const run = async () => {
    trial.value = await post<RuleTrial>("/v1/rules/try", { emailId });
  };
  const shown = trial.value?.emailId === emailId ? trial.value : null;
  return (
    <Dialog title="Try the rules on a message" size="wide" onClose={onClose}>
      <div class="dialog-body form">
        <Problem error={messages.error.value} onRetry={messages.reload} />
        {emailId === "" && messages.value.value !== null ? (
          <p class="quiet">No message was received yet.</p>
        ) : (
          <Form task={task} onSubmit={run}>
            <SelectField
              label="Message"
              name="emailId"
              value={fieldValue(
                () => emailId,
                (next) => {
                  chosen.value = next;
                },
              )}
              options={[
                ...(isListed || messageId === null ? [] : [{ value: messageId, text: messageId }]),
                ...found.map(({ id, from, subject }) => ({
                  value: id,
                  text: `${subject === "" ? "(no subject)" : subject} · ${from}`,
                })),
              ]}
              hint={`The ${OFFERED} newest that were received. The page of an older one leads here too. Trying changes nothing.`}
            />
            <p class="part-actions">
              <button type="submit" class="button primary" disabled={task.busy.value || emailId === ""}>
                Try the rules
              </button>
            </p>
          </Form>
        )}
        {shown === null ? null : <Trial rules={rules} trial={shown} />}
      </div>
    </Dialog>
  );
}

/** What the rules did on trial: the outcome, then each rule with its reason. */
function Trial({ rules, trial }: { rules: readonly Rule[]; trial: RuleTrial }) {
  const names = namesOf(useNamed());
  return (
    <section class="detail-part form" aria-label="Result">
      <p class="answer" role="status">
        {outcomeText(trial.outcome, names)}
      </p>
      <ul class="checks">
        {trial.rules.map((asked) => (
          <Asked key={asked.id} asked={asked} rule={rules.find(({ id }) => id === asked.id)} />
        ))}
      </ul>
      <EndedBy rules={rules} trial={trial} />
    </section>
  );
}

function Asked({ asked, rule }: { asked: RuleTrial["rules"][number]; rule: Rule | undefined }) {
  const { name, matched, conditions } = asked;
  const words = conditions.map(({ condition }) => conditionText(rule?.when ?? {}, condition));
  const failed = conditions.findIndex(({ met }) => !met);
  return (
    <li>
      <Dot tone={matched ? "good" : "quiet"} word={matched ? "Matches" : "No"} />
      <div>
        <p class="strong">{name}</p>
        <p class="quiet">
          {matched
            ? words.length === 0
              ? "It has no conditions."
              : `Because ${joined(words)}.`
            : `Not true: ${words[failed] ?? ""}.`}
        </p>
      </div>
    </li>
  );
}

/** The enabled rules that were not asked, because one before them ends them. */
function EndedBy({ rules, trial }: { rules: readonly Rule[]; trial: RuleTrial }) {
  const last = rules.findIndex(({ id }) => id === trial.rules.at(-1)?.id);
  const ends = rules[last]?.then ?? {};
  const isEnd = ends.stop === true || ends.drop === true || ends.reject !== undefined;
  const later = rules.slice(last + 1).some(({ enabled }) => enabled);
  if (!isEnd || !later || trial.rules.at(-1)?.matched !== true) return null;
  return <p class="quiet">Later rules were not asked, because {rules[last]?.name} skips them.</p>;
}
