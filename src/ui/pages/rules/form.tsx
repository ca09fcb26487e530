import { type Signal, useSignal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { ForwardAddress, Page, Rule } from "../../api/types.ts";
import { RecordForm } from "../../components/records/form.tsx";
import type { RecordFormProps } from "../../components/records/page.tsx";
import { CheckBox, fieldValue, SelectField, TextArea, TextField, withChosen } from "../../controls/form.tsx";
import { TemplateChoice } from "../messages/template.tsx";
import { useNamed } from "./data.ts";
import { bodyOf, draftOf, type RuleDraft } from "./draft.ts";
import { ForwardAddresses } from "./forward.tsx";

interface FieldsProps {
  draft: Signal<RuleDraft>;
}

/** Creates a rule, or changes its conditions and what it does. */
export function RuleForm(props: RecordFormProps<Rule>) {
  const draft = useSignal(draftOf(props.record));
  const { inboxes } = useNamed();
  const adds = useSignal(false);
  const addresses = useResource("forward addresses", () =>
    get<Page<ForwardAddress>>("/v1/forward-addresses", { limit: 100 }),
  );
  const confirmed = (addresses.value.value?.data ?? []).flatMap(({ status, email }) =>
    status === "confirmed" ? [email] : [],
  );
  return (
    <>
      <RecordForm {...props} noun="rule" api="/v1/rules" body={() => bodyOf(draft.value)} size="wide">
        <div class="field-pair">
          <TextField
            label="Name"
            name="name"
            value={partOf(draft, "name")}
            autoFocus
            placeholder="Newsletters"
          />
          <SelectField
            label="Mail to"
            name="inboxId"
            value={partOf(draft, "inboxId")}
            options={[
              { value: "", text: "All inboxes" },
              ...inboxes.map(({ id, address }) => ({ value: id, text: address })),
            ]}
          />
        </div>
        <Conditions draft={draft} />
        <Effects draft={draft} confirmed={confirmed} onAdd={() => (adds.value = true)} />
      </RecordForm>
      {/* Next to the form, because a form must not hold another one. */}
      {adds.value ? (
        <ForwardAddresses
          onClose={() => {
            adds.value = false;
            addresses.reload();
          }}
        />
      ) : null}
    </>
  );
}

const ANY = { value: "", text: "Any" };

function Conditions({ draft }: FieldsProps) {
  return (
    <fieldset class="form" aria-label="If all of this holds">
      <h3>If all of this holds</h3>
      <p class="hint">
        An empty field does not count. Words match anywhere in the value, or at its end if they begin with *:
        *@example.com
      </p>
      <div class="field-pair">
        <TextField
          label="Author"
          name="when.from"
          value={partOf(draft, "from")}
          placeholder="*@example.com"
        />
        <TextField label="Recipient" name="when.to" value={partOf(draft, "to")} placeholder="sales@" />
      </div>
      <TextField label="Subject" name="when.subject" value={partOf(draft, "subject")} placeholder="invoice" />
      <div class="field-pair">
        <TextField
          label="Header field"
          name="when.header.name"
          value={partOf(draft, "headerName")}
          code
          placeholder="List-Id"
        />
        <TextField label="Its value" name="when.header.value" value={partOf(draft, "headerValue")} />
      </div>
      <div class="field-pair">
        <SelectField
          label="Files"
          name="when.hasAttachment"
          value={partOf(draft, "files")}
          options={[ANY, { value: "yes", text: "With a file" }, { value: "no", text: "Without a file" }]}
        />
        <TextField
          label="Larger than, bytes"
          name="when.largerThan"
          type="number"
          min="0"
          value={partOf(draft, "largerThan")}
        />
      </div>
      <div class="field-pair">
        <SelectField
          label="Proof of the author"
          name="when.auth"
          value={partOf(draft, "auth")}
          options={[
            ANY,
            { value: "pass", text: "DMARC proves it" },
            { value: "fail", text: "DMARC does not prove it" },
          ]}
        />
        <SelectField
          label="Trust of the sender"
          name="when.trust"
          value={partOf(draft, "trust")}
          options={[
            ANY,
            { value: "unauthenticated", text: "Unauthenticated" },
            { value: "authenticated", text: "Authenticated" },
            { value: "known", text: "Known" },
            { value: "allowed", text: "Allowed" },
          ]}
        />
      </div>
      <TextField
        label="Spam score above"
        name="when.spamScoreAbove"
        type="number"
        value={partOf(draft, "spamScoreAbove")}
        hint="Mail without a verdict of the spam filter has no score."
      />
    </fieldset>
  );
}

function Effects({ draft, confirmed, onAdd }: ForwardProps) {
  const { members } = useNamed();
  const { assigneeId } = draft.value;
  const known = members.map(({ id, email }) => ({ value: id, text: email }));
  return (
    <fieldset class="form" aria-label="Then">
      <h3>Then</h3>
      <TextArea
        label="Add labels"
        name="then.labels"
        value={partOf(draft, "labels")}
        rows={2}
        placeholder="billing"
        hint="One a line."
      />
      <div class="field-pair">
        <SelectField
          label="Assign to"
          name="then.assigneeId"
          value={partOf(draft, "assigneeId")}
          options={[{ value: "", text: "Nobody" }, ...withChosen(known, assigneeId)]}
        />
        <SelectField
          label="Folder"
          name="then.folder"
          value={partOf(draft, "folder")}
          options={[
            { value: "", text: "As the spam filter says" },
            { value: "inbox", text: "Never spam" },
            { value: "spam", text: "Spam" },
            { value: "trash", text: "Trash" },
          ]}
        />
      </div>
      <CheckBox label="Archive the conversation" checked={partOf(draft, "archive")} />
      <CheckBox label="Mark it as read" checked={partOf(draft, "markRead")} />
      <TemplateChoice
        templateId={partOf(draft, "replyTemplateId")}
        label="Answer with the template"
        name="then.replyTemplateId"
      />
      <ForwardChoice draft={draft} confirmed={confirmed} onAdd={onAdd} />
      <SelectField
        label="In the end"
        name="then.stop"
        value={partOf(draft, "ends")}
        options={[
          { value: "", text: "Go on with the next rule" },
          { value: "stop", text: "Skip all later rules" },
          { value: "reject", text: "Refuse the message" },
          { value: "drop", text: "Accept the message, and keep only its header" },
        ]}
      />
      {draft.value.ends === "reject" ? (
        <TextField
          label="Words of the refusal"
          name="then.reject"
          value={partOf(draft, "reject")}
          placeholder="No advertising, please"
          hint="The sender's server gets 550 5.7.1 with them before the message is accepted. ASCII only."
        />
      ) : null}
    </fieldset>
  );
}

interface ForwardProps extends FieldsProps {
  /** The addresses that rules may forward to. */
  confirmed: readonly string[];
  onAdd: () => void;
}

/** Chooses one of the confirmed addresses. */
function ForwardChoice({ draft, confirmed, onAdd }: ForwardProps) {
  const { forwardTo } = draft.value;
  const known = confirmed.map((email) => ({ value: email, text: email }));
  return (
    <>
      <SelectField
        label="Forward to"
        name="then.forwardTo"
        value={partOf(draft, "forwardTo")}
        options={[
          { value: "", text: "Nobody" },
          ...withChosen(known, forwardTo, `${forwardTo} (not confirmed)`),
        ]}
        hint="An address whose owner has agreed. A new one gets a link by mail, and is here once that is used."
      />
      <p class="part-actions">
        <button type="button" class="button small" onClick={onAdd}>
          Add an address
        </button>
      </p>
    </>
  );
}

/** Returns a part of the draft as the value of a field. */
function partOf<Name extends keyof RuleDraft>(
  draft: Signal<RuleDraft>,
  name: Name,
): { value: RuleDraft[Name] } {
  return fieldValue(
    () => draft.value[name],
    (next) => {
      draft.value = { ...draft.value, [name]: next };
    },
  );
}
