import { useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import { EVENT_TYPES } from "../../api/server-lists.ts";
import type { Webhook } from "../../api/types.ts";
import { Checks } from "../../controls/checks.tsx";
import { Dialog } from "../../controls/dialog.tsx";
import { CheckBox, Form, TextField } from "../../controls/form.tsx";
import { useTask } from "../../controls/task.ts";
import { can } from "../../state/session.ts";
import { eventWords } from "../../words/status.ts";

const ALL_TYPES = "*";
/** Types that are chosen at first: those that a program must act on. */
const FIRST_TYPES = ["delivery", "bounce", "complaint", "inbound_received"];

/** Returns whether the webhook has event names of Resend's dialect, such as `email.sent`, which only its API changes. */
function speaksResend({ eventTypes }: Webhook): boolean {
  return eventTypes.some((type) => type.includes("."));
}

interface WebhookFormProps {
  /** The webhook to change; null makes another one. */
  webhook: Webhook | null;
  onClose: () => void;
  onSaved: (webhook: Webhook) => void;
}

/** Adds a webhook, or changes where it pushes and what. */
export function WebhookForm({ webhook, onClose, onSaved }: WebhookFormProps) {
  const task = useTask();
  const url = useSignal(webhook?.url ?? "");
  const all = useSignal(webhook?.eventTypes.includes(ALL_TYPES) ?? true);
  const types = useSignal<ReadonlySet<string>>(
    new Set(webhook === null || all.peek() ? FIRST_TYPES : webhook.eventTypes),
  );
  const foreign = webhook !== null && speaksResend(webhook);
  const content = useSignal(webhook?.content ?? can("emails:read"));
  const save = async () => {
    const body = {
      url: url.value.trim(),
      ...(foreign ? {} : { eventTypes: all.value ? [ALL_TYPES] : [...types.value] }),
      content: content.value,
    };
    const saved =
      webhook === null
        ? await post<Webhook>("/v1/webhooks", body)
        : await patch<Webhook>(`/v1/webhooks/${encodeURIComponent(webhook.id)}`, body);
    onSaved(saved);
  };
  return (
    <Dialog title={webhook === null ? "Add a webhook" : "Change the webhook"} onClose={onClose}>
      <Form class="dialog-body form" task={task} onSubmit={save}>
        <TextField
          label="URL"
          name="url"
          type="url"
          value={url}
          task={task}
          autoFocus
          placeholder="https://example.com/webhooks"
          hint="Events are posted to it as signed JSON."
        />
        {foreign ? (
          <p class="quiet">It speaks Resend's dialect. Its events are chosen with Resend's API.</p>
        ) : (
          <CheckBox label="All events" checked={all} />
        )}
        {foreign || all.value ? null : (
          <Checks
            label="Events"
            name="eventTypes"
            chosen={types}
            task={task}
            options={EVENT_TYPES.map((type) => ({ value: type, text: type, title: eventWords(type).means }))}
          />
        )}
        {can("emails:read") ? (
          <CheckBox label="Send subjects, texts and addresses along" checked={content} />
        ) : null}
        <footer class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={task.busy.value}>
            {webhook === null ? "Add webhook" : "Save webhook"}
          </button>
        </footer>
      </Form>
    </Dialog>
  );
}
