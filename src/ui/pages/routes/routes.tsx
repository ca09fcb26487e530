import { useSignal } from "@preact/signals";
import { usePages } from "../../api/pages.ts";
import type { OutRoute } from "../../api/types.ts";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { SecretDialog } from "../../controls/secret.tsx";
import { useKey } from "../../state/keyboard.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { RouteDetail } from "./detail.tsx";
import { RouteForm } from "./form.tsx";
import { KIND_WORDS, limitsText } from "./words.ts";

/**
 * The account's ways out for mail, and next to them the one that the path names. Without it an operator writes the login of a relay
 * as a URL into a shell, and looks up in the guide what to enter at its provider.
 */
export function RoutesPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<OutRoute>("/v1/routes", {}, ({ id }) => id);
  const secretUrl = useSignal<string | null>(null);
  const close = () => navigate("/routes");
  useKey("Escape", () => selected !== null && close());
  const create = <CreateLink scope="senders:write" text="Create route" plus />;
  return (
    <Page title="Routes" layout="panes" actions={create}>
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Routes"
          pages={pages}
          columns="columns-webhooks"
          heads={["Name", "Kind", "Limits", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/routes/${id}`}
          cells={(route) => <Cells route={route} />}
          empty={null}
        />
        {selected === null ? null : (
          <RouteDetail
            key={selected}
            id={selected}
            onClose={close}
            onChanged={pages.refresh}
            onDeleted={(route) => {
              pages.drop(route);
              close();
            }}
            onSecretUrl={(url) => (secretUrl.value = url)}
          />
        )}
      </div>
      {opensForm("senders:write") ? (
        <RouteForm
          route={null}
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onSaved={({ id }) => {
            pages.refresh();
            navigate(`/routes/${id}`, { replace: true });
          }}
        />
      ) : null}
      {secretUrl.value === null ? null : (
        <SecretDialog
          title="The URL for events"
          what="URL with its secret"
          secret={secretUrl.value}
          onClose={() => (secretUrl.value = null)}
        />
      )}
    </Page>
  );
}

function Cells({ route }: { route: OutRoute }) {
  const { name, kind, createdAt } = route;
  return (
    <>
      <span class="cut strong">{name}</span>
      <span class="status">{KIND_WORDS[kind].short}</span>
      <span class="cut quiet wide-only">{limitsText(route)}</span>
      {createdAt === null ? <span class="age" /> : <RelativeTime at={createdAt} />}
    </>
  );
}
