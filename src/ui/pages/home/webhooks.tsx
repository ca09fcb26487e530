import { get } from "../../api/client.ts";
import { useLiveReload } from "../../api/live.ts";
import { useResource } from "../../api/resource.ts";
import type { Page, Webhook } from "../../api/types.ts";
import { RelativeTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { can } from "../../state/session.ts";
import { WebhookStatus } from "../webhooks/status.tsx";

/** Minimum time between reloads while events arrive, ms. */
const REFRESH_MS = 3_000;
/** Maximum number of webhooks that are looked at, and of those that are shown. */
const LOOKED_AT = 100;
const SHOWN = 6;

/** Reads the webhooks of the project, once for all parts of the page. Without the right to read them there are none. */
export function useWebhooks() {
  return useResource("webhooks of home", async () =>
    can("webhooks:read") ? (await get<Page<Webhook>>("/v1/webhooks", { limit: LOOKED_AT })).data : [],
  );
}

/** The webhooks that get no events: all pushes fail, or the service has disabled them. Nothing if there are none. */
export function FailingWebhooks() {
  const webhooks = useWebhooks();
  useLiveReload(webhooks.reload, REFRESH_MS);
  const failing = (webhooks.value.value ?? []).filter(({ enabled, failingSince, disabledReason }) =>
    enabled ? failingSince !== null : disabledReason !== null,
  );
  if (failing.length === 0) return <Problem error={webhooks.error.value} onRetry={webhooks.reload} />;
  return (
    <section class="panel" aria-label="Failing webhooks">
      <header class="panel-head">
        <h2>Failing webhooks</h2>
        <a href="/webhooks">All webhooks</a>
      </header>
      <ul class="plain-rows">
        {failing.slice(0, SHOWN).map((webhook) => (
          <li key={webhook.id}>
            <a class="row columns-trouble" href={`/webhooks/${webhook.id}`}>
              <WebhookStatus webhook={webhook} />
              <span class="cut">{webhook.url.replace(/^https:\/\//, "")}</span>
              <span class="cut quiet">{webhook.disabledReason ?? "Every push to it fails."}</span>
              <RelativeTime at={webhook.failingSince ?? webhook.createdAt} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
