import { type Signal, useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import { ApiError } from "../../api/error.ts";
import type { Contact, Topic } from "../../api/types.ts";
import {
  CheckBox,
  type FieldValue,
  fieldValue,
  SelectField,
  TextArea,
  TextField,
} from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";
import { useAudience } from "../../state/audience.ts";
import type { Audience } from "../../words/filter.ts";
import { PropertyField, propertyValue, valueText } from "./values.tsx";

interface Values {
  firstName: Signal<string>;
  lastName: Signal<string>;
  metadata: Signal<string>;
  /** Those that the form has changed, by name. Empty: the value goes. */
  properties: Signal<Readonly<Record<string, string>>>;
  /** Those that the form has changed, by the id of the topic. */
  topics: Signal<Readonly<Record<string, Choice>>>;
}

type Choice = Contact["topics"][string];

function useValues(contact: Contact | null): Values {
  return {
    firstName: useSignal(contact?.firstName ?? ""),
    lastName: useSignal(contact?.lastName ?? ""),
    metadata: useSignal(metadataText(contact?.metadata ?? {})),
    properties: useSignal({}),
    topics: useSignal({}),
  };
}

/** Returns metadata as a person edits it; empty if there is none. */
export function metadataText(metadata: Record<string, unknown>): string {
  return Object.keys(metadata).length === 0 ? "" : JSON.stringify(metadata, null, 2);
}

/** Returns the fields as the API takes them. @throws ApiError if the metadata is no JSON object */
function bodyOf({ firstName, lastName, metadata, properties, topics }: Values, audience: Audience | null) {
  const name = ({ value }: Signal<string>) => (value.trim() === "" ? null : value.trim());
  const typeOf = (wanted: string) =>
    audience?.properties.find((one) => one.name === wanted)?.type ?? "string";
  const values = Object.entries(properties.value).map(([key, text]) => [
    key,
    propertyValue(text, typeOf(key)),
  ]);
  return {
    firstName: name(firstName),
    lastName: name(lastName),
    metadata: parseMetadata(metadata.value),
    ...(values.length === 0 ? {} : { properties: Object.fromEntries(values) }),
    ...(Object.keys(topics.value).length === 0 ? {} : { topics: topics.value }),
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
  const audience = useAudience().value.value;
  const create = async () => {
    const body = { email: email.value.trim(), subscribed: subscribed.value, ...bodyOf(values, audience) };
    onCreated(await post<Contact>("/v1/contacts", body));
  };
  return (
    <FormDialog title="Create a contact" verb="Create contact" onSubmit={create} onClose={onClose}>
      <TextField label="Address" name="email" value={email} autoFocus placeholder="ana@example.com" />
      <Fields contact={null} values={values} audience={audience} />
      <CheckBox label="Subscribed" checked={subscribed} />
    </FormDialog>
  );
}

interface EditProps {
  contact: Contact;
  onClose: () => void;
  onSaved: (contact: Contact) => void;
}

/** Changes names, properties, topics and metadata. */
export function EditContact({ contact, onClose, onSaved }: EditProps) {
  const values = useValues(contact);
  const audience = useAudience().value.value;
  const save = async () => {
    onSaved(await patch<Contact>(`/v1/contacts/${encodeURIComponent(contact.id)}`, bodyOf(values, audience)));
    onClose();
  };
  return (
    <FormDialog title={`Edit ${contact.email}`} verb="Save contact" onSubmit={save} onClose={onClose}>
      <Fields contact={contact} values={values} audience={audience} />
    </FormDialog>
  );
}

interface FieldsProps {
  contact: Contact | null;
  values: Values;
  audience: Audience | null;
}

function Fields({ contact, values, audience }: FieldsProps) {
  return (
    <>
      <div class="field-pair">
        <TextField label="First name" name="firstName" value={values.firstName} />
        <TextField label="Last name" name="lastName" value={values.lastName} />
      </div>
      {audience?.properties.map(({ name, type, fallback }) => (
        <PropertyField
          key={name}
          label={name}
          name={`properties.${name}`}
          type={type}
          value={entryOf(values.properties, name, String(contact?.properties[name] ?? ""))}
          hint={fallback === null ? undefined : `If it is empty, templates get ${valueText(fallback)}.`}
        />
      ))}
      {audience?.topics.map((topic) => (
        <TopicField key={topic.id} topic={topic} chosen={contact?.topics[topic.id]} values={values} />
      ))}
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

interface TopicFieldProps {
  topic: Topic;
  chosen: Choice | undefined;
  values: Values;
}

function TopicField({ topic: { id, name, defaultSubscribed }, chosen, values }: TopicFieldProps) {
  const none = { value: "", text: `Not chosen: ${defaultSubscribed ? "gets it" : "does not get it"}` };
  return (
    <SelectField
      label={`Topic ${name}`}
      name={`topics.${id}`}
      value={entryOf(values.topics, id, chosen ?? "")}
      options={[
        // A choice cannot be taken back.
        ...(chosen === undefined ? [none] : []),
        ...(chosen === "pending" ? [{ value: "pending", text: "Asked by a mailed link" }] : []),
        { value: "subscribed", text: "Subscribed" },
        { value: "unsubscribed", text: "Unsubscribed" },
      ]}
    />
  );
}

/** Returns one entry of a record as the value of a field. The first value is no change. */
function entryOf<Value extends string>(
  record: Signal<Readonly<Record<string, Value>>>,
  key: string,
  first: Value | "",
): FieldValue {
  return fieldValue(
    () => record.value[key] ?? first,
    (next) => {
      const { [key]: _, ...others } = record.value;
      record.value = (next === first ? others : { ...others, [key]: next }) as Record<string, Value>;
    },
  );
}
