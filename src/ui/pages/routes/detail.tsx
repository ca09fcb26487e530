import { useSignal } from "@preact/signals";
import { get, remove } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { OutRoute } from "../../api/types.ts";
import { Detail } from "../../components/detail.tsx";
import { Fact } from "../../components/fact.tsx";
import { LocalTime } from "../../components/time.tsx";
import { ConfirmName } from "../../controls/confirm-name.tsx";
import { Problem } from "../../controls/problem.tsx";
import { can } from "../../state/session.ts";
import { countText } from "../../words/amounts.ts";
import { RouteName } from "./choice.tsx";
import { EventsPart } from "./events.tsx";
import { RouteForm } from "./form.tsx";
import { KIND_WORDS } from "./words.ts";

interface DetailProps {
  id: string;
  onClose: () => void;
  /** Called when the route's row in the list has changed. */
  onChanged: () => void;
  onDeleted: (route: OutRoute) => void;
  /** Shows a URL with a secret, which the API shows only once. */
  onSecretUrl: (url: string) => void;
}

/** One route: where it leads, its limits, and the events of its relay. The login of a relay is never shown. */
export function RouteDetail({ id, onClose, onChanged, onDeleted, onSecretUrl }: DetailProps) {
  const path = `/v1/routes/${encodeURIComponent(id)}`;
  const route = useResource(`route ${id}`, () => get<OutRoute>(path, {}, { account: true }));
  const found = route.value.value;
  const changed = (next: OutRoute) => {
    route.set(next);
    onChanged();
  };
  // The settings make a route without a time of creation.
  const isFixed = found === null || found.createdAt === null || !can("senders:write");
  return (
    <Detail
      name="Route"
      id={id}
      busy={route.loading.value}
      onClose={onClose}
      actions={
        isFixed ? null : (
          <Actions route={found} path={path} onChanged={changed} onDeleted={() => onDeleted(found)} />
        )
      }
    >
      <Problem error={route.error.value} onRetry={route.reload} />
      {found === null ? null : (
        <>
          <Head route={found} />
          {found.kind === "relay" && found.createdAt !== null ? (
            <EventsPart route={found} path={path} onChanged={changed} onSecretUrl={onSecretUrl} />
          ) : null}
        </>
      )}
    </Detail>
  );
}

function Head({ route }: { route: OutRoute }) {
  const { name, kind, relayHost, pool, ratePerSecond, warmUp, createdAt } = route;
  return (
    <div class="detail-head">
      <h2>{name}</h2>
      <p class="answer" role="status">
        {KIND_WORDS[kind].means}
      </p>
      {createdAt === null ? (
        <p class="quiet">
          The settings <code>DELIVERY</code> and <code>SMTP_RELAY_URL</code> make this route. Change it there.
        </p>
      ) : null}
      <dl class="facts">
        {kind === "relay" ? <Fact name="Relay" value={<code>{relayHost}</code>} /> : null}
        {kind === "relay" && createdAt !== null ? (
          <Fact name="Rate" value={ratePerSecond === null ? "No limit" : `${ratePerSecond} a second`} />
        ) : null}
        {kind === "mx" && createdAt !== null ? (
          <Fact name="Pool" value={pool ?? "That of the stream"} />
        ) : null}
        {warmUp === null ? null : <Fact name="Warm-up" value={<WarmUpText warmUp={warmUp} />} />}
        {createdAt === null ? null : <Fact name="Created" value={<LocalTime at={createdAt} />} />}
      </dl>
    </div>
  );
}

function WarmUpText({
  warmUp: { targetPerDay, overflowRouteId, startedAt },
}: {
  warmUp: NonNullable<OutRoute["warmUp"]>;
}) {
  return (
    <span>
      Since <LocalTime at={startedAt} />, up to {countText(targetPerDay)} a day.{" "}
      {overflowRouteId === null ? (
        "What is above the day's cap takes the next route, or waits."
      ) : (
        <>
          What is above the day's cap leaves by <RouteName id={overflowRouteId} />.
        </>
      )}
    </span>
  );
}

interface ActionsProps {
  route: OutRoute;
  path: string;
  onChanged: (route: OutRoute) => void;
  onDeleted: () => void;
}

function Actions({ route, path, onChanged, onDeleted }: ActionsProps) {
  const open = useSignal<"edit" | "delete" | null>(null);
  const close = () => {
    open.value = null;
  };
  return (
    <>
      <button type="button" class="button small" onClick={() => (open.value = "delete")}>
        Delete
      </button>
      <button type="button" class="button small" onClick={() => (open.value = "edit")}>
        Edit
      </button>
      {open.value === "edit" ? (
        <RouteForm
          route={route}
          onClose={close}
          onSaved={(saved) => {
            onChanged(saved);
            close();
          }}
        />
      ) : null}
      {open.value === "delete" ? (
        <ConfirmName
          title={`Delete ${route.name}?`}
          name={route.name}
          verb="Delete route"
          onConfirm={async () => {
            await remove(path, {}, { account: true });
            onDeleted();
          }}
          onClose={close}
        >
          <p>The route and its login are deleted. Its provider's events are refused from then on.</p>
        </ConfirmName>
      ) : null}
    </>
  );
}
