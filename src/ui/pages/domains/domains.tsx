import { usePages } from "../../api/pages.ts";
import type { Domain } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { codeContext } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { curlText } from "../../words/code.ts";
import { DomainDetail } from "./detail.tsx";
import { DomainStatus } from "./status.tsx";
import { useSignal } from "@preact/signals";
import { post } from "../../api/client.ts";
import { TextField } from "../../controls/form.tsx";
import { FormDialog, type MakerProps } from "../../controls/form-dialog.tsx";

/** The domains of the project, and next to them the one that the path names. */
export function DomainsPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<Domain>("/v1/domains", {}, ({ id }) => id);
  const close = () => navigate("/domains");
  useKey("Escape", () => selected !== null && close());
  const add = <CreateLink scope="domains:write" text="Add domain" plus />;
  return (
    <Page title="Domains" layout="panes" actions={add}>
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Domains"
          pages={pages}
          columns="columns-domains"
          heads={["Domain", "Status", "Use", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/domains/${id}`}
          cells={(domain) => <Cells domain={domain} />}
          empty={<NoDomains />}
        />
        {selected === null ? null : (
          <DomainDetail key={selected} id={selected} onClose={close} onChanged={pages.refresh} />
        )}
      </div>
      {opensForm("domains:write") ? (
        <NewDomain
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onCreated={({ id }) => {
            pages.refresh();
            navigate(`/domains/${id}`, { replace: true });
          }}
        />
      ) : null}
    </Page>
  );
}

function Cells({ domain: { status, domain, receiving, createdAt } }: { domain: Domain }) {
  return (
    <>
      <span class="cut strong">{domain}</span>
      <DomainStatus status={status} />
      <span class="cut quiet wide-only">
        {status === "pending" ? "Waits for its DNS records" : receiving ? "Sends and receives" : "Sends"}
      </span>
      <RelativeTime at={createdAt} />
    </>
  );
}

function NoDomains() {
  return (
    <EmptyState
      action={<CreateLink scope="domains:write" text="Add a domain" />}
      command={curlText("POST", "/v1/domains", { domain: "mail.example.com" }, codeContext())}
    >
      Add the domain that you send from. You then get the DNS records to publish.
    </EmptyState>
  );
}

/** Adds a domain to the project. */
function NewDomain({ onClose, onCreated }: MakerProps<Domain>) {
  const name = useSignal("");
  const create = async () => {
    onCreated(await post<Domain>("/v1/domains", { domain: name.value.trim() }));
  };
  return (
    <FormDialog title="Add a domain" verb="Add domain" onSubmit={create} onClose={onClose}>
      <TextField
        label="Domain"
        name="domain"
        value={name}
        autoFocus
        placeholder="mail.example.com"
        hint="A subdomain that is used for sending only keeps your other mail apart."
      />
    </FormDialog>
  );
}
