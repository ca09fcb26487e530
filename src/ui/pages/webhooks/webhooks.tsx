import { useSignal } from "@preact/signals";
import { usePages } from "../../api/pages.ts";
import type { Webhook } from "../../api/types.ts";
import { EmptyState } from "../../components/empty.tsx";
import { List } from "../../components/list.tsx";
import { Page } from "../../components/page.tsx";
import { SecretDialog } from "../../controls/secret.tsx";
import { RelativeTime } from "../../components/time.tsx";
import { CreateLink, opensForm } from "../../components/create-link.tsx";
import { codeContext } from "../../state/installation.ts";
import { useKey } from "../../state/keyboard.ts";
import { navigate, type PageProps, urlWith } from "../../state/router.ts";
import { curlText } from "../../words/code.ts";
import { WebhookDetail } from "./detail.tsx";
import { WebhookForm } from "./form.tsx";
import { typesText, WebhookStatus } from "./status.tsx";

/** The webhooks of the project, and next to them the one that the path names. */
export function WebhooksPage({ params }: PageProps) {
  const selected = params.id ?? null;
  const pages = usePages<Webhook>("/v1/webhooks", {}, ({ id }) => id);
  const secret = useSignal<string | null>(null);
  const close = () => navigate("/webhooks");
  useKey("Escape", () => selected !== null && close());
  const add = <CreateLink scope="webhooks:write" text="Add webhook" plus />;
  const created = ({ id, signingSecret }: Webhook) => {
    pages.refresh();
    secret.value = signingSecret;
    navigate(`/webhooks/${id}`, { replace: true });
  };
  return (
    <Page title="Webhooks" layout="panes" actions={add}>
      <div class={selected === null ? "split" : "split open"}>
        <List
          label="Webhooks"
          pages={pages}
          columns="columns-webhooks"
          heads={["URL", "State", "Events", "Age"]}
          selected={selected}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => `/webhooks/${id}`}
          cells={(webhook) => <Cells webhook={webhook} />}
          empty={<NoWebhooks />}
        />
        {selected === null ? null : (
          <WebhookDetail
            key={selected}
            id={selected}
            onClose={close}
            onChanged={pages.refresh}
            onSecret={(shown) => (secret.value = shown)}
          />
        )}
      </div>
      {opensForm("webhooks:write") ? (
        <WebhookForm
          webhook={null}
          onClose={() => navigate(urlWith({ create: null }), { replace: true })}
          onSaved={created}
        />
      ) : null}
      {secret.value === null ? null : (
        <SecretDialog
          title="The signing secret"
          what="signing secret"
          secret={secret.value}
          onClose={() => (secret.value = null)}
        />
      )}
    </Page>
  );
}

function Cells({ webhook }: { webhook: Webhook }) {
  return (
    <>
      <span class="cut strong">{webhook.url.replace(/^https:\/\//, "")}</span>
      <WebhookStatus webhook={webhook} />
      <span class="cut quiet wide-only">{typesText(webhook.eventTypes)}</span>
      <RelativeTime at={webhook.createdAt} />
    </>
  );
}

function NoWebhooks() {
  const body = { url: "https://example.com/webhooks", eventTypes: ["*"] };
  return (
    <EmptyState
      action={<CreateLink scope="webhooks:write" text="Add a webhook" />}
      command={curlText("POST", "/v1/webhooks", body, codeContext())}
    >
      A webhook tells your program about deliveries, bounces and mail that arrives.
    </EmptyState>
  );
}
