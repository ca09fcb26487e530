import { usePages } from "../../api/pages.ts";
import type { Contact } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { FileButtons, ImportDialog } from "../../components/files/lists-as-files.tsx";
import { Page } from "../../components/page.tsx";
import { SearchField } from "../../components/search.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { codeContext } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, type PageProps, place, query, urlWith } from "../../state/router.ts";
import { curlText } from "../../words/code.ts";
import { nameOf, SubscriptionDot } from "./contact.tsx";
import { contactBulk } from "./bulk.ts";
import { ContactDetail } from "./detail.tsx";
import { NewContact } from "./edit.tsx";
import { Filters } from "./filters.tsx";
import { PropertiesPage } from "./properties.tsx";

/** The contacts, or what they may have. */
export function ContactsPage({ params }: PageProps) {
  const [, section] = place.value.path.split("/");
  if (section === "properties") return <PropertiesPage id={params.id ?? null} />;
  return <ContactList selected={params.id ?? null} />;
}

/** Contacts with search and filter, and next to them the one that the path names. */
function ContactList({ selected }: { selected: string | null }) {
  const filter = {
    subscribed: query.value.get("subscribed"),
    q: query.value.get("q"),
    filter: query.value.get("filter"),
    segmentId: query.value.get("segmentId") || null,
  };
  const pages = usePages<Contact>("/v1/contacts", filter, ({ id }) => id);
  const close = () => navigate(urlWith({}, "/contacts"));
  const endCreate = () => navigate(urlWith({ create: null }), { replace: true });
  useKey("Escape", () => selected !== null && close());
  const search = place.value.search;
  const filtered = Object.values(filter).some((value) => value !== null);
  return (
    <Page
      title="Contacts"
      layout="panes"
      tools={
        <SearchField
          label="Search contacts"
          placeholder="Search address or name"
          value={filter.q ?? ""}
          onSearch={(q) => navigate(urlWith({ q }, "/contacts"), { replace: true })}
        />
      }
      actions={
        <>
          <FileButtons list="contacts" filter={filter} />
          <CreateLink scope="contacts:write" text="Create contact" plus />
        </>
      }
      bar={<Filters />}
    >
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Contacts"
          pages={pages}
          columns="columns-messages columns-people"
          heads={["Subscription", "Address", "Name", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => changedUrl(`/contacts/${id}`, search, { create: null, edit: null })}
          cells={(contact) => <Cells contact={contact} />}
          bulk={contactBulk()}
          empty={<NoContacts filtered={filtered} />}
        />
        {selected === null ? (
          <p class="split-hint quiet">Choose a contact to see and change it.</p>
        ) : (
          <ContactDetail
            key={selected}
            id={selected}
            onClose={close}
            onChanged={pages.refresh}
            onDeleted={(contact) => {
              pages.drop(contact);
              close();
            }}
          />
        )}
      </div>
      <ImportDialog list="contacts" onImported={pages.refresh} />
      {opensForm("contacts:write") ? (
        <NewContact
          onClose={endCreate}
          onCreated={({ id }) => {
            pages.refresh();
            navigate(urlWith({ create: null }, `/contacts/${id}`), { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

function Cells({ contact }: { contact: Contact }) {
  const { email, subscribed, createdAt } = contact;
  return (
    <>
      <SubscriptionDot subscribed={subscribed} />
      <span class="cut who-cell">{email}</span>
      <span class="cut subject-cell" dir="auto">
        {nameOf(contact)}
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function NoContacts({ filtered }: { filtered: boolean }) {
  if (filtered)
    return (
      <EmptyState
        action={
          <a class="button" href="/contacts">
            Show all contacts
          </a>
        }
      >
        No contact fits this search and filter.
      </EmptyState>
    );
  const first = { email: "ana@example.com", firstName: "Ana", metadata: { customerId: "42" } };
  return (
    <EmptyState
      action={<CreateLink scope="contacts:write" text="Create a contact" />}
      command={curlText("POST", "/v1/contacts", first, codeContext())}
    >
      A contact keeps the name of an address, your own fields, and whether the person has unsubscribed.
    </EmptyState>
  );
}
