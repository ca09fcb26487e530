import { type Signal, useSignal } from "@preact/signals";
import { patch, post } from "../../api/client.ts";
import type { OutRoute } from "../../api/types.ts";
import { CheckBox, SelectField, TextField } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { routeOptions, useRoutes } from "./choice.tsx";

interface RouteFormProps {
  /** The route to change; null makes another one. */
  route: OutRoute | null;
  onClose: () => void;
  onSaved: (route: OutRoute) => void;
}

interface RelayValues {
  server: Signal<string>;
  scheme: Signal<string>;
  user: Signal<string>;
  password: Signal<string>;
}

interface WarmUpValues {
  on: Signal<boolean>;
  target: Signal<string>;
  /** Empty: none. */
  overflow: Signal<string>;
}

/** Creates a route, or changes its limits. A relay's login is written only, so a change of it takes all of it. */
export function RouteForm({ route, onClose, onSaved }: RouteFormProps) {
  const name = useSignal(route?.name ?? "");
  const kind = useSignal<string>(route?.kind ?? "relay");
  const opensRelay = useSignal(route === null);
  const relay: RelayValues = {
    server: useSignal(route?.relayHost ?? ""),
    scheme: useSignal("smtp"),
    user: useSignal(""),
    password: useSignal(""),
  };
  const rate = useSignal(route?.ratePerSecond?.toString() ?? "");
  const pool = useSignal(route?.pool ?? "");
  const warmUp: WarmUpValues = {
    on: useSignal((route?.warmUp ?? null) !== null),
    target: useSignal(route?.warmUp?.targetPerDay.toString() ?? ""),
    overflow: useSignal(route?.warmUp?.overflowRouteId ?? ""),
  };
  const isRelay = kind.value === "relay";
  const save = async () => {
    const own = isRelay
      ? {
          ...(opensRelay.value ? { relayUrl: relayUrlOf(relay) } : {}),
          ratePerSecond: numberOrNull(rate.value),
        }
      : { pool: pool.value.trim() === "" ? null : pool.value.trim() };
    const body = { name: name.value.trim(), ...own, warmUp: warmUpOf(warmUp) };
    const saved =
      route === null
        ? await post<OutRoute>("/v1/routes", { ...body, kind: kind.value }, { account: true })
        : await patch<OutRoute>(`/v1/routes/${encodeURIComponent(route.id)}`, body, { account: true });
    onSaved(saved);
  };
  return (
    <FormDialog
      title={route === null ? "Create a route" : `Edit ${route.name}`}
      verb={route === null ? "Create route" : "Save route"}
      onSubmit={save}
      onClose={onClose}
    >
      <TextField label="Name" name="name" value={name} autoFocus placeholder="ses" />
      {route === null ? (
        <SelectField
          label="Mail goes"
          name="kind"
          value={kind}
          options={[
            { value: "relay", text: "Through a relay" },
            { value: "mx", text: "Straight to the recipients' mail servers" },
          ]}
        />
      ) : null}
      {isRelay ? (
        <>
          {route === null ? null : <CheckBox label="Change the relay and its login" checked={opensRelay} />}
          {opensRelay.value ? <RelayFields values={relay} /> : null}
          <TextField
            label="Messages a second"
            name="ratePerSecond"
            type="number"
            min="0"
            value={rate}
            hint="Maximum of each worker. Empty: no limit."
          />
        </>
      ) : (
        <TextField
          label="Pool"
          name="pool"
          value={pool}
          code
          placeholder="bulk"
          hint="The addresses of EGRESS that it sends from. Empty: those of the message's stream."
        />
      )}
      <WarmUpFields values={warmUp} without={route?.id ?? null} />
    </FormDialog>
  );
}

function RelayFields({ values: { server, scheme, user, password } }: { values: RelayValues }) {
  return (
    <>
      <TextField
        label="Server"
        name="relayUrl"
        value={server}
        code
        placeholder="smtp.example.com:587"
        hint="Host and port of the relay."
      />
      <SelectField
        label="Encryption"
        name="scheme"
        value={scheme}
        options={[
          { value: "smtp", text: "STARTTLS (ports 25 and 587)" },
          { value: "smtps", text: "TLS from the start (port 465)" },
        ]}
      />
      <div class="field-pair">
        <TextField label="User" name="user" value={user} code />
        <TextField label="Password" name="password" type="password" value={password} />
      </div>
      <p class="hint">The login is stored sealed and never shown. Without one, leave both empty.</p>
    </>
  );
}

function WarmUpFields({
  values: { on, target, overflow },
  without,
}: {
  values: WarmUpValues;
  /** Id of the route itself, which cannot be its own overflow. */
  without: string | null;
}) {
  const routes = useRoutes().value.value ?? [];
  const others = routes.filter(({ id }) => id !== without);
  return (
    <>
      <CheckBox label="Warm up: send more each day" checked={on} />
      {on.value ? (
        <>
          <TextField
            label="Grows to, messages a day"
            name="warmUp.targetPerDay"
            type="number"
            min="1"
            value={target}
            placeholder="20000"
            hint="The first day allows 50. A day with trouble repeats."
          />
          <SelectField
            label="Above the day's cap"
            name="warmUp.overflowRouteId"
            value={overflow}
            options={[
              { value: "", text: "Take the next route, or wait" },
              ...routeOptions(others, overflow.value, (name) => `Leave by ${name}`),
            ]}
          />
        </>
      ) : null}
    </>
  );
}

/** Returns the URL of a relay. The host's characters that have a meaning in a URL are escaped, so that the API refuses them. */
function relayUrlOf({ server, scheme, user, password }: RelayValues): string {
  const login =
    user.value === "" && password.value === ""
      ? ""
      : `${encodeURIComponent(user.value)}:${encodeURIComponent(password.value)}@`;
  return `${scheme.value}://${login}${server.value.trim().replace(/[^\w.:[\]-]/g, encodeURIComponent)}`;
}

function warmUpOf({ on, target, overflow }: WarmUpValues) {
  if (!on.value) return null;
  return {
    targetPerDay: numberOrNull(target.value),
    overflowRouteId: overflow.value === "" ? null : overflow.value,
  };
}

function numberOrNull(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}
