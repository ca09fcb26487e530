import { get } from "../../api/client.ts";
import { usePages } from "../../api/pages.ts";
import { useResource } from "../../api/resource.ts";
import type { Delivery, Webhook } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { LocalTime } from "../../components/time.tsx";
import { Problem } from "../../controls/problem.tsx";
import { query } from "../../state/router.ts";
import { can } from "../../state/session.ts";
import { Actions } from "./actions.tsx";
import { DeliveryLog } from "./log.tsx";
import { typesText, WebhookStatus } from "./status.tsx";

interface DetailProps {
  id: string;
  onClose: () => void;
  /** Called when the webhook's row in the list has changed. */
  onChanged: () => void;
  /** Shows a secret that the API shows only once. */
  onSecret: (secret: string) => void;
}

/** One webhook: its URL, and the outcome of each delivery. */
export function WebhookDetail({ id, onClose, onChanged, onSecret }: DetailProps) {
  const path = `/v1/webhooks/${encodeURIComponent(id)}`;
  const webhook = useResource(`webhook ${id}`, () => get<Webhook>(path));
  const status = query.value.get("status");
  const log = usePages<Delivery>(`${path}/deliveries`, { status }, (delivery) => delivery.id);
  const found = webhook.value.value;
  const changed = (next: Webhook) => {
    webhook.set(next);
    onChanged();
  };
  return (
    <Detail
      name="Webhook"
      id={id}
      busy={webhook.loading.value}
      onClose={onClose}
      actions={
        found === null || !can("webhooks:write") ? null : (
          <Actions
            webhook={found}
            path={path}
            onChanged={changed}
            onSecret={onSecret}
            onDeleted={() => {
              onChanged();
              onClose();
            }}
          />
        )
      }
    >
      <Problem error={webhook.error.value} onRetry={webhook.reload} />
      {found === null ? null : (
        <>
          <Head webhook={found} />
          <DeliveryLog webhook={found} path={path} log={log} />
        </>
      )}
    </Detail>
  );
}

function Head({ webhook }: { webhook: Webhook }) {
  const { url, enabled, disabledReason, failingSince, eventTypes, content } = webhook;
  return (
    <div class="detail-head">
      <h2 title={url}>{url}</h2>
      <p class="answer" role="status">
        <WebhookStatus webhook={webhook} />
        {enabled ? null : <span>{disabledReason ?? "Events create no deliveries until it is enabled."}</span>}
        {enabled && failingSince !== null ? (
          <span>
            Every push has failed since <LocalTime at={failingSince} />.
          </span>
        ) : null}
      </p>
      <dl class="facts">
        <div>
          <dt>Events</dt>
          <dd title={eventTypes.join(", ")}>{typesText(eventTypes)}</dd>
        </div>
        <div>
          <dt>Content</dt>
          <dd>
            {content ? "With subjects, texts and addresses" : "Without subjects, texts and other addresses"}
          </dd>
        </div>
      </dl>
    </div>
  );
}
