import { useSignal } from "@preact/signals";
import { get, patch } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { NOTICE_KINDS } from "../../api/server-lists.ts";
import type { AccountSettings } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import { Checks } from "../../controls/checks.tsx";
import { Form, TextArea, TextField } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { SecretDialog } from "../../controls/secret.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { kindText } from "../../words/notices.ts";

const WHOLE_ACCOUNT = { account: true } as const;
type Settings = AccountSettings["notices"];

/** The settings of the account's notices: their readers and their kinds. */
export function NoticeSettings() {
  const account = useResource("account", () => get<AccountSettings>("/v1/account", {}, WHOLE_ACCOUNT));
  const secret = useSignal<string | null>(null);
  const found = account.value.value;
  const saved = (answer: AccountSettings) => {
    account.set(answer);
    secret.value = answer.notices.webhookSecret ?? null;
  };
  return (
    <>
      <Problem error={account.error.value} onRetry={account.reload} />
      {found === null ? null : can("senders:write") ? (
        <NoticeForm settings={found.notices} onSaved={saved} />
      ) : (
        <NoticeFacts settings={found.notices} />
      )}
      {secret.value === null ? null : (
        <SecretDialog
          title="The signing secret"
          what="signing secret"
          secret={secret.value}
          onClose={() => (secret.value = null)}
        />
      )}
    </>
  );
}

/** The view of a reader who may not change it. */
function NoticeFacts({ settings: { to, webhook, off } }: { settings: Settings }) {
  const none = "None";
  return (
    <dl class="facts">
      <Fact name="Mailed to" value={to.join(", ") || none} />
      <Fact name="Webhook" value={webhook ?? none} />
      <Fact name="Not sent" value={off.map(kindText).join(", ") || none} />
    </dl>
  );
}

interface FormProps {
  settings: Settings;
  onSaved: (answer: AccountSettings) => void;
}

function NoticeForm({ settings, onSaved }: FormProps) {
  const task = useTask();
  const before = settings.to.join("\n");
  const to = useSignal(before);
  const webhook = useSignal(settings.webhook ?? "");
  const sent = useSignal<ReadonlySet<string>>(
    new Set(NOTICE_KINDS.filter((kind) => !settings.off.some((one) => one === kind))),
  );
  const done = useSignal(false);
  const save = async () => {
    done.value = false;
    const url = webhook.value.trim();
    const notices = {
      // Left out, the list stays what it is: the owner's address, whichever that will be.
      ...(to.value === before ? {} : { to: to.value.split(/[\s,;]+/).filter((address) => address !== "") }),
      webhook: url === "" ? null : url,
      off: NOTICE_KINDS.filter((kind) => !sent.value.has(kind)),
    };
    onSaved(await patch<AccountSettings>("/v1/account", { notices }, WHOLE_ACCOUNT));
    done.value = true;
  };
  return (
    <Form class="form notice-form" task={task} onSubmit={save}>
      <TextArea
        label="Addresses"
        name="notices.to"
        value={to}
        rows={3}
        hint="One a line, ten at most. Each reader can approve messages that wait for it. If there is none, no notice is mailed."
      />
      <TextField
        label="Webhook URL"
        name="notices.webhook"
        type="url"
        value={webhook}
        placeholder="https://example.com/notices"
        hint="Each notice is posted to it as signed JSON. Another URL gets a new secret. Save again to enable it if it was disabled."
      />
      <Checks
        label="Kinds that are sent"
        name="notices.off"
        chosen={sent}
        options={NOTICE_KINDS.map((kind) => ({ value: kind, text: kindText(kind) }))}
      />
      <p class="hint">Each is sent at most once a day. All are in the list of notices.</p>
      <footer class="editor-foot">
        <span class="quiet" role="status">
          {done.value ? "Saved." : ""}
        </span>
        <button type="submit" class="button primary" disabled={task.busy.value}>
          Save
        </button>
      </footer>
    </Form>
  );
}
