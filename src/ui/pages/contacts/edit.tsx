import { type Signal, useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import { ApiError } from "../../api/error.ts";
import type { Contact } from "../../api/types.ts";
import { CheckBox, TextArea, TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";

interface Values {
  firstName: Signal<string>;
  lastName: Signal<string>;
  metadata: Signal<string>;
}

function useValues(contact: Contact | null): Values {
  return {
    firstName: useSignal(contact?.firstName ?? ""),
    lastName: useSignal(contact?.lastName ?? ""),
    metadata: useSignal(metadataText(contact?.metadata ?? {})),
  };
}

/** Returns metadata as a person edits it; empty if there is none. */
export function metadataText(metadata: Record<string, unknown>): string {
  return Object.keys(metadata).length === 0 ? "" : JSON.stringify(metadata, null, 2);
}

/** Returns the fields as the API takes them. @throws ApiError if the metadata is no JSON object */
function bodyOf({ firstName, lastName, metadata }: Values) {
  const name = ({ value }: Signal<string>) => (value.trim() === "" ? null : value.trim());
  return {
    firstName: name(firstName),
    lastName: name(lastName),
    metadata: parseMetadata(metadata.value),
  };
}

function parseMetadata(text: string): object {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Refused below.
  }
  const message = 'Metadata must be a JSON object, such as {"customerId": "42"}.';
  throw new ApiError(message, { status: 0, type: "validation_error", param: "metadata" });
}

/** Makes a contact. */
export function NewContact({ onClose, onCreated }: MakerProps<Contact>) {
  const email = useSignal("");
  const subscribed = useSignal(true);
  const values = useValues(null);
  const create = async () => {
    const body = { email: email.value.trim(), subscribed: subscribed.value, ...bodyOf(values) };
    onCreated(await post<Contact>("/v1/contacts", body));
  };
  return (
    <FormDialog title="Create a contact" verb="Create contact" onSubmit={create} onClose={onClose}>
      <TextField label="Address" name="email" value={email} autoFocus placeholder="ana@example.com" />
      <NameFields values={values} />
      <CheckBox label="Subscribed" checked={subscribed} />
    </FormDialog>
  );
}

interface EditProps {
  contact: Contact;
  onClose: () => void;
  onSaved: (contact: Contact) => void;
}

/** Changes names and metadata. */
export function EditContact({ contact, onClose, onSaved }: EditProps) {
  const values = useValues(contact);
  const save = async () => {
    onSaved(await patch<Contact>(`/v1/contacts/${encodeURIComponent(contact.id)}`, bodyOf(values)));
    onClose();
  };
  return (
    <FormDialog title={`Edit ${contact.email}`} verb="Save contact" onSubmit={save} onClose={onClose}>
      <NameFields values={values} />
    </FormDialog>
  );
}

function NameFields({ values }: { values: Values }) {
  return (
    <>
      <TextField label="First name" name="firstName" value={values.firstName} />
      <TextField label="Last name" name="lastName" value={values.lastName} />
      <TextArea
        label="Metadata"
        name="metadata"
        value={values.metadata}
        rows={5}
        code
        placeholder={'{ "customerId": "42" }'}
        hint="Your own fields as a JSON object. Optional."
      />
    </>
  );
}
