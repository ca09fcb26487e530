import { useSignal } from "@preact/signals";
import type { ContactProperty } from "../../api/types.ts";
import { Fact } from "../../components/fact.tsx";
import { RecordForm } from "../../components/records/form.tsx";
import { type RecordFormProps, type RecordKind, RecordsPage } from "../../components/records/page.tsx";
import { LocalTime, RelativeTime } from "../../components/time.tsx";
import { fieldValue, SelectField, TextField } from "../../controls/form.tsx";
import { can } from "../../state/session.ts";
import { PropertyField, propertyValue, valueText } from "./values.tsx";

const PROPERTIES: RecordKind<ContactProperty> = {
  title: "Properties of contacts",
  noun: "property",
  path: "/properties",
  api: "/v1/contact-properties",
  scope: "audience:write",
  heads: ["Type", "Name", "If a contact has none", "Age"],
  Cells,
  Form: PropertyForm,
  Body,
  loses: "Its values are removed from all contacts within some minutes. Then the name is free again.",
  about: "A property is a field of contacts with a type, for segments and templates.",
  first: { name: "plan", type: "string", fallback: "free" },
  hint: "Choose a property to see and change it.",
  tools: (
    <a class="button" href="/contacts">
      All contacts
    </a>
  ),
};

/** The properties that contacts may have, and next to them the one that the path names. */
export function PropertiesPage({ id }: { id: string | null }) {
  return <RecordsPage kind={PROPERTIES} selected={id} />;
}

const TYPES: Readonly<Record<ContactProperty["type"], string>> = {
  string: "Text",
  number: "Number",
  boolean: "Yes or no",
  date: "Date",
};

function Cells({ record: { name, type, fallback, createdAt } }: { record: ContactProperty }) {
  return (
    <>
      <span class="status">{TYPES[type]}</span>
      <code class="cut who-cell">{name}</code>
      <span class="cut subject-cell" dir="auto">
        {fallback === null ? "" : valueText(fallback)}
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function Body({ record: { name, type, fallback, createdAt } }: { record: ContactProperty }) {
  const those = encodeURIComponent(JSON.stringify({ all: [{ property: name, op: "set" }] }));
  return (
    <div class="detail-head">
      <h2>{name}</h2>
      <p class="answer">{TYPES[type]}</p>
      <dl class="facts">
        <Fact
          name="Fallback"
          value={fallback === null ? "None: templates get nothing" : valueText(fallback)}
        />
        <Fact name="Created" value={<LocalTime at={createdAt} />} />
        {can("contacts:read") ? (
          <Fact name="Contacts" value={<a href={`/contacts?filter=${those}`}>Contacts with a value</a>} />
        ) : null}
      </dl>
    </div>
  );
}

function PropertyForm(props: RecordFormProps<ContactProperty>) {
  const { record } = props;
  const name = useSignal("");
  const type = useSignal<ContactProperty["type"]>(record?.type ?? "string");
  const fallback = useSignal(String(record?.fallback ?? ""));
  const body = () => ({
    ...(record === null ? { name: name.value.trim(), type: type.value } : {}),
    fallback: propertyValue(fallback.value, type.value),
  });
  return (
    <RecordForm {...props} noun={PROPERTIES.noun} api={PROPERTIES.api} body={body}>
      {record === null ? (
        <>
          <TextField
            label="Name"
            name="name"
            value={name}
            autoFocus
            code
            placeholder="plan"
            hint="It never changes."
          />
          <SelectField
            label="Type"
            name="type"
            value={fieldValue(
              () => type.value,
              (next) => {
                type.value = next as ContactProperty["type"];
                fallback.value = "";
              },
            )}
            options={Object.entries(TYPES).map(([value, text]) => ({ value, text }))}
            hint="It never changes."
          />
        </>
      ) : null}
      <PropertyField
        label="If a contact has none"
        name="fallback"
        type={type.value}
        value={fallback}
        hint="Templates get this. Optional."
      />
    </RecordForm>
  );
}
