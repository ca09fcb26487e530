import type { Signal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { Inbox } from "../../api/types.ts";
import { Checks } from "../../controls/checks.tsx";
import { CheckBox } from "../../controls/form.tsx";
import { can } from "../../state/session.ts";

/** Returns the inboxes of a project for pages that name or offer them. None if the reader may not see them. */
function useInboxes(project: string): Resource<Inbox[]> {
  return useResource(`inboxes of ${project}`, async () => {
    if (project === "" || !can("inboxes:read")) return [];
    return (await get<{ data: Inbox[] }>("/v1/inboxes", {}, { project })).data;
  });
}

interface InboxChecksProps {
  /** Id of the project; empty for all. */
  project: string;
  limited: Signal<boolean>;
  chosen: Signal<ReadonlySet<string>>;
}

/** The choice of the inboxes that a key sees. */
export function InboxChecks({ project, limited, chosen }: InboxChecksProps) {
  const inboxes = useInboxes(project).value.value ?? [];
  if (inboxes.length === 0) return null;
  return (
    <>
      <CheckBox label="Sees only some inboxes, and mail of no other" checked={limited} />
      {limited.value ? (
        <Checks
          label="Inboxes"
          name="inboxIds"
          chosen={chosen}
          options={inboxes.map(({ id, address }) => ({ value: id, text: address, title: address }))}
        />
      ) : null}
    </>
  );
}

/** The addresses of the inboxes that a key sees. */
export function InboxNames({ project, ids }: { project: string; ids: readonly string[] }) {
  const inboxes = useInboxes(project).value.value ?? [];
  const nameOf = (id: string) => inboxes.find((inbox) => inbox.id === id)?.address ?? id;
  return <>{ids.map(nameOf).join(", ")}</>;
}
