import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { usePages } from "../../api/pages.ts";
import type { ApiKey } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { SecretDialog } from "../../controls/secret.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { useKey } from "../../state/keyboard.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { KeyDetail } from "./detail.tsx";
import { NewKey } from "./new-key.tsx";
import { KeyStatus, projectText, scopesText } from "./words.tsx";

/** The API keys that the session may see, and next to them the one that the path names. */
export function KeysPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<ApiKey>("/v1/api-keys", {}, ({ id }) => id);
  const secret = useSignal<string | null>(null);
  const close = () => navigate("/keys");
  useKey("Escape", () => selected !== null && close());
  const found = pages.rows.value.find(({ id }) => id === selected);
  const further = selected !== null && found === undefined && !pages.done.value && !pages.loading.value;
  // The API gives no single key, so the page reads the list until it has found an older one.
  useEffect(() => {
    if (further && pages.ready.value && pages.error.value === null) pages.more();
  }, [further, pages.rows.value.length]);
  const create = <CreateLink scope="api_keys:write" text="Create key" plus />;
  return (
    <Page title="Keys" layout="panes" actions={create}>
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="API keys"
          pages={pages}
          columns="columns-keys"
          heads={["Name", "State", "Project", "Scopes", "Used"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/keys/${id}`}
          cells={(key) => <Cells apiKey={key} />}
          empty={<EmptyState>There is no API key.</EmptyState>}
        />
        {found !== undefined ? (
          <KeyDetail key={found.id} apiKey={found} onClose={close} onChanged={pages.refresh} />
        ) : selected !== null && pages.done.value ? (
          <EmptyState>There is no API key with this id.</EmptyState>
        ) : null}
      </div>
      {opensForm("api_keys:write") ? (
        <NewKey
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onCreated={(key) => {
            pages.refresh();
            secret.value = key.secret;
            navigate(`/keys/${key.id}`, { replace: true });
          }}
        />
      ) : null}
      {secret.value === null ? null : (
        <SecretDialog
          title="The API key"
          what="API key"
          secret={secret.value}
          onClose={() => (secret.value = null)}
        />
      )}
    </Page>
  );
}

function Cells({ apiKey }: { apiKey: ApiKey }) {
  const { name, lastUsedAt } = apiKey;
  return (
    <>
      <span class="cut strong" dir="auto">
        {name}
      </span>
      <KeyStatus apiKey={apiKey} />
      <span class="cut quiet wide-only">{projectText(apiKey)}</span>
      <span class="cut quiet wide-only far-only">{scopesText(apiKey.scopes)}</span>
      {lastUsedAt === null ? <span class="age">unused</span> : <RelativeTime at={lastUsedAt} />}
    </>
  );
}
