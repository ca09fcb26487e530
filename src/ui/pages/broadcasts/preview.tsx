import { useSignal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Contact, Page } from "../../api/types.ts";
import { fieldValue, SelectField } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useAudience, useSegments } from "../../state/audience.ts";
import { can } from "../../state/session.ts";
import type { Audience } from "../../words/filter.ts";
import { Rendering } from "../templates/rendering.tsx";
import { readersFilter } from "./words.ts";

/** Contacts that the preview offers: the newest of those who would get it. */
const OFFERED = 20;
/** Used in place of the link, which each message has and a preview lacks. */
const NO_LINK = "#unsubscribe";
/** Used in place of the address, which the service fills in when the letter is sent. */
const ADDRESS = "[Postal address of the project]";

/** The content of a letter, and its readers. */
export interface Letter {
  topicId: string;
  /** Null: all contacts. */
  segmentId: string | null;
  subject: string;
  /** Empty: no other subject is tested. */
  otherSubject: string;
  html: string;
  text: string;
}

/** Returns the newest contacts who would get a letter. */
function useReaders({ topicId, segmentId }: Letter) {
  const segments = useSegments().value.value;
  const segment = segments?.find(({ id }) => id === segmentId) ?? null;
  const isKnown = segmentId === null || segment !== null;
  return useResource(`readers ${topicId} ${segmentId} ${isKnown}`, async () => {
    if (!isKnown || !can("contacts:read")) return [];
    const filter = JSON.stringify(readersFilter(topicId, segment));
    return (await get<Page<Contact>>("/v1/contacts", { filter, limit: OFFERED })).data;
  });
}

/** Returns the JSON that fills a letter for a contact, as the service makes it. */
function dataFor(contact: Contact | undefined, audience: Audience | null): string {
  const fallbacks = (audience?.properties ?? []).flatMap(({ name, fallback }) =>
    fallback === null ? [] : [[name, fallback] as const],
  );
  const { email, firstName, lastName, properties } = contact ?? {};
  const own = Object.entries({ email, firstName, lastName }).filter(([, value]) => value != null);
  const values = { ...Object.fromEntries(fallbacks), ...properties };
  return JSON.stringify({
    contact: { ...Object.fromEntries(own), properties: values },
    postalAddress: ADDRESS,
    unsubscribeUrl: NO_LINK,
  });
}

/** A letter as one of its readers sees it. */
export function LetterPreview(letter: Letter) {
  const readers = useReaders(letter);
  const audience = useAudience().value.value;
  const chosen = useSignal("");
  const variant = useSignal("a");
  const contacts = readers.value.value ?? [];
  const contact = contacts.find(({ id }) => id === chosen.value) ?? contacts[0];
  if (readers.value.value === null && readers.error.value === null) return null;
  const { subject, otherSubject, html, text } = letter;
  const shown = variant.value === "b" && otherSubject !== "" ? otherSubject : subject;
  return (
    <div class="form">
      <Problem error={readers.error.value} onRetry={readers.reload} />
      {contact === undefined ? (
        <p class="quiet">No contact would get it now.</p>
      ) : (
        <SelectField
          label="As this contact gets it"
          name="reader"
          value={fieldValue(
            () => contact.id,
            (id) => {
              chosen.value = id;
            },
          )}
          options={contacts.map(({ id, email }) => ({ value: id, text: email }))}
        />
      )}
      {otherSubject === "" ? null : (
        <SelectField
          label="With the subject"
          name="variant"
          value={variant}
          options={[
            { value: "a", text: `A: ${subject}` },
            { value: "b", text: `B: ${otherSubject}` },
          ]}
        />
      )}
      <Rendering {...{ subject: shown, html, text }} data={dataFor(contact, audience)} />
    </div>
  );
}
