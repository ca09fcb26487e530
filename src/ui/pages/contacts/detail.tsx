import { useSignal } from "@preact/signals";
import { get, post, remove } from "../../api/client.ts";
import type { Contact } from "../../api/types.ts";
import { useResource } from "../../api/resource.ts";
import { Code, CopyButton } from "../../controls/copy.tsx";
import { Detail } from "../../components/detail.tsx";
import { Confirm } from "../../controls/dialog.tsx";
import { Fact } from "../../components/fact.tsx";
import { useTask } from "../../controls/task.ts";
import { Problem } from "../../controls/problem.tsx";
import { LocalTime } from "../../components/time.tsx";
import { can } from "../../state/session.ts";
import { nameOf, SubscriptionDot } from "./contact.tsx";
import { Consent, Properties, Topics } from "./audience.tsx";
import { EditContact, metadataText } from "./edit.tsx";

interface DetailProps {
  id: string;
  onClose: () => void;
  /** Called when the contact's row in the list has changed. */
  onChanged: () => void;
  onDeleted: (contact: Contact) => void;
}

/** One contact with its subscription and metadata. */
export function ContactDetail({ id, onClose, onChanged, onDeleted }: DetailProps) {
  const contact = useResource(`contact ${id}`, () => get<Contact>(pathOf(id)));
  const found = contact.value.value;
  const changed = (next: Contact) => {
    contact.set(next);
    onChanged();
  };
  return (
    <Detail
      name="Contact"
      id={id}
      busy={contact.loading.value}
      onClose={onClose}
      actions={
        found === null || !can("contacts:write") ? null : (
          <Actions contact={found} onChanged={changed} onDeleted={() => onDeleted(found)} />
        )
      }
    >
      <Problem error={contact.error.value} onRetry={contact.reload} />
      {found === null ? null : <Body contact={found} />}
    </Detail>
  );
}

function pathOf(id: string): string {
  return `/v1/contacts/${encodeURIComponent(id)}`;
}

function Body({ contact }: { contact: Contact }) {
  const { email, subscribed, unsubscribedAt, metadata, createdAt, updatedAt } = contact;
  const name = nameOf(contact);
  const fields = metadataText(metadata);
  return (
    <>
      <div class="detail-head">
        <h2 dir="auto">{name === "" ? email : name}</h2>
        <p class="answer">
          <SubscriptionDot subscribed={subscribed} />
          <span>
            {subscribed
              ? "Gets all messages."
              : "Gets no messages that have an unsubscribe link. Other messages still arrive."}
          </span>
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
          <Fact name="Created" value={<LocalTime at={createdAt} />} />
          {updatedAt === createdAt ? null : <Fact name="Changed" value={<LocalTime at={updatedAt} />} />}
          {unsubscribedAt === null ? null : <Fact name="Left" value={<LocalTime at={unsubscribedAt} />} />}
          {can("emails:read") ? (
            <Fact
              name="Messages"
              value={<a href={`/messages?to=${encodeURIComponent(email)}`}>Messages to this address</a>}
            />
          ) : null}
        </dl>
      </div>
      <Properties contact={contact} />
      <Topics contact={contact} />
      <Consent contact={contact} />
      <section class="detail-part form" aria-label="Metadata">
        <h3>Metadata</h3>
        {fields === "" ? (
          <p class="quiet">This contact has no fields of your own.</p>
        ) : (
          <Code text={fields} what="metadata" />
        )}
      </section>
    </>
  );
}

interface ActionsProps {
  contact: Contact;
  onChanged: (contact: Contact) => void;
  onDeleted: () => void;
}

function Actions({ contact, onChanged, onDeleted }: ActionsProps) {
  const open = useSignal<"edit" | "delete" | null>(null);
  const task = useTask();
  const close = () => {
    open.value = null;
  };
  const verb = contact.subscribed ? "unsubscribe" : "resubscribe";
  const turn = () => task.run(async () => onChanged(await post<Contact>(`${pathOf(contact.id)}/${verb}`)));
  const erase = async () => {
    await remove(pathOf(contact.id));
    onDeleted();
  };
  return (
    <>
      <Problem error={open.value === null ? task.error.value : null} />
      <button type="button" class="button small" disabled={task.busy.value} onClick={() => void turn()}>
        {contact.subscribed ? "Unsubscribe" : "Resubscribe"}
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "edit")}>
        Edit
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "delete")}>
        Delete
      </button>
      {open.value === "edit" ? <EditContact contact={contact} onSaved={onChanged} onClose={close} /> : null}
      {open.value === "delete" ? (
        <Confirm
          title={`Delete ${contact.email}?`}
          verb="Delete contact"
          task={task}
          onConfirm={erase}
          onClose={close}
        >
          <p>
            The name, your own fields and the choice to unsubscribe are deleted. Messages to the address stay,
            and more can be sent.
          </p>
        </Confirm>
      ) : null}
    </>
  );
}
