import { useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import { EVENT_TYPES } from "../../api/server-lists.ts";
import type { Webhook } from "../../api/types.ts";
import { Checks } from "../../controls/checks.tsx";
import { CheckBox, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
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
    <FormDialog
      title={webhook === null ? "Add a webhook" : "Change the webhook"}
      verb={webhook === null ? "Add webhook" : "Save webhook"}
      onSubmit={save}
      onClose={onClose}
    >
      <TextField
        label="URL"
        name="url"
        type="url"
        value={url}
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
          options={EVENT_TYPES.map((type) => ({ value: type, text: type, title: eventWords(type).means }))}
        />
      )}
      {can("emails:read") ? (
        <CheckBox label="Send subjects, texts and addresses along" checked={content} />
      ) : null}
    </FormDialog>
  );
}
