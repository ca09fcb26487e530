import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../../api/client.ts";
import { type ApiError, asApiError } from "../../api/error.ts";
import { useResource } from "../../api/resource.ts";
import type { Contact, Page, Rendered, SendItem } from "../../api/types.ts";
import { after } from "../../browser/clock.ts";
import { Tabs } from "../../components/tabs.tsx";
import { SelectField } from "../../controls/form.tsx";
import { Problem } from "../../controls/problem.tsx";
import { useAudience, useSegments } from "../../state/audience.ts";
import { can } from "../../state/session.ts";
import { parseMailboxes } from "../../words/addresses.ts";
import type { Audience } from "../../words/filter.ts";
import { parseData } from "../../words/sample-data.ts";
import { Check } from "../messages/check.tsx";
import { Rendering } from "../templates/rendering.tsx";
import { readersFilter } from "./words.ts";

/** Contacts that the preview offers: the newest of those who would get it. */
const OFFERED = 20;
/** A letter is checked after a pause in typing of this length, milliseconds. */
const PAUSE_MS = 500;
/** Stands for the link of each message, which a preview has not. */
const NO_LINK = "#unsubscribe";
/** In a message to check, the variable stays, because each recipient's link is made when the message leaves. */
const LINK_VARIABLE = "{{unsubscribeUrl}}";

/** What a letter says, and to whom. */
export interface Letter {
  topicId: string;
  /** Null: all contacts. */
  segmentId: string | null;
  subject: string;
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
function dataFor(contact: Contact | undefined, audience: Audience | null, unsubscribeUrl: string): string {
  const fallbacks = (audience?.properties ?? []).flatMap(({ name, fallback }) =>
    fallback === null ? [] : [[name, fallback] as const],
  );
  const { email, firstName, lastName, properties } = contact ?? {};
  const own = Object.entries({ email, firstName, lastName }).filter(([, value]) => value != null);
  const values = { ...Object.fromEntries(fallbacks), ...properties };
  return JSON.stringify({ contact: { ...Object.fromEntries(own), properties: values }, unsubscribeUrl });
}

/** A letter as one of its readers sees it. With `from`, it can be checked too. */
export function LetterPreview({ from, ...letter }: Letter & { from?: string }) {
  const readers = useReaders(letter);
  const audience = useAudience().value.value;
  const chosen = useSignal("");
  const tab = useSignal("preview");
  const contacts = readers.value.value ?? [];
  const contact = contacts.find(({ id }) => id === chosen.value) ?? contacts[0];
  if (readers.value.value === null && readers.error.value === null) return null;
  const { subject, html, text } = letter;
  const rendering = <Rendering {...{ subject, html, text }} data={dataFor(contact, audience, NO_LINK)} />;
  return (
    <div class="form">
      <Problem error={readers.error.value} onRetry={readers.reload} />
      {contact === undefined ? (
        <p class="quiet">No contact would get it now.</p>
      ) : (
        <SelectField
          label="As this contact gets it"
          name="reader"
          value={{
            get value() {
              return contact.id;
            },
            set value(id) {
              chosen.value = id;
            },
          }}
          options={contacts.map(({ id, email }) => ({ value: id, text: email }))}
        />
      )}
      {from === undefined || contact === undefined || !can("emails:send") ? (
        rendering
      ) : (
        <Tabs
          label="View of the letter"
          tabs={[
            { id: "preview", label: "Preview" },
            { id: "check", label: "Check" },
          ]}
          selected={tab.value}
          onSelect={(id) => (tab.value = id)}
        >
          {tab.value === "preview" ? (
            rendering
          ) : (
            <LetterCheck letter={letter} from={from} contact={contact} audience={audience} />
          )}
        </Tabs>
      )}
    </div>
  );
}

interface CheckProps {
  letter: Letter;
  from: string;
  contact: Contact;
  audience: Audience | null;
}

/** Checks the message that a contact would get, after a pause in typing. */
function LetterCheck({ letter, from, contact, audience }: CheckProps) {
  const made = useSignal<{ key: string; item: SendItem } | null>(null);
  const error = useSignal<ApiError | null>(null);
  const key = JSON.stringify([letter, from, contact.id]);
  useEffect(() => {
    let current = true;
    const cancel = after(PAUSE_MS, async () => {
      try {
        const item = await itemFor(letter, from, contact, dataFor(contact, audience, LINK_VARIABLE));
        if (!current) return;
        made.value = { key, item };
        error.value = null;
      } catch (thrown) {
        if (current) error.value = asApiError(thrown);
      }
    });
    return () => {
      current = false;
      cancel();
    };
  }, [key]);
  return (
    <>
      <Problem error={error.value} />
      {made.value?.key === key ? <Check key={key} item={made.value.item} /> : null}
    </>
  );
}

/** Returns the message that a contact would get as a send. */
async function itemFor(
  { topicId, subject, html, text }: Letter,
  from: string,
  { email }: Contact,
  data: string,
): Promise<SendItem> {
  const rendered = await post<Rendered>("/v1/templates/preview", {
    subject,
    html: html === "" ? null : html,
    text: text === "" ? null : text,
    data: parseData(data),
  });
  return {
    from: parseMailboxes(from)[0] ?? { email: "" },
    to: [{ email }],
    subject: rendered.subject,
    ...(rendered.html === null ? {} : { html: rendered.html }),
    ...(rendered.text === null ? {} : { text: rendered.text }),
    topicId,
    unsubscribeLink: true,
    stream: "bulk",
  };
}
