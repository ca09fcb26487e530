import { type Signal, useSignal } from "@preact/signals";
import { get, patch } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { OutRoute, Page } from "../../api/types.ts";
import { type FieldValue, fieldValue, SelectField, withChosen } from "../../controls/form.tsx";
import { FormDialog } from "../../controls/form-dialog.tsx";
import { accountWide, can } from "../../state/session.ts";
import { capitalized } from "../../words/case.ts";

/** Maximum number of routes that a form offers. */
const OFFERED_ROUTES = 100;
/** The places of the routes that a project or domain may name. */
const PLACES = ["First", "Second", "Third"];

/** Returns the account's routes for forms that offer them. */
export function useRoutes(): Resource<OutRoute[]> {
  return useResource("routes for forms", async () => {
    const query = { limit: OFFERED_ROUTES };
    return (await get<Page<OutRoute>>("/v1/routes", query, { account: true })).data;
  });
}

/** Returns the options of a choice of routes. */
export function routeOptions(routes: readonly OutRoute[], chosen: string, text = (name: string) => name) {
  const known = routes.map(({ id, name }) => ({ value: id, text: text(name) }));
  return withChosen(known, chosen, text(chosen));
}

/** The name of a route, which leads to it. */
export function RouteName({ id }: { id: string }) {
  const found = useRoutes().value.value?.find((route) => route.id === id);
  return <a href={`/routes/${id}`}>{found?.name ?? id}</a>;
}

interface RoutesPartProps<Owner> {
  /** The project or domain that names the routes, and its path in the API. */
  owner: { name: string; routeIds: readonly string[] };
  path: string;
  /** True if the path is the account's, not a project's. */
  account?: boolean;
  /** A sentence about an empty choice, in lower case. */
  ifNone: string;
  /** Scope that a change needs. */
  scope: string;
  onChanged: (changed: Owner) => void;
}

/** The routes that a project's or a domain's mail takes, in order, and their choice. Only account-wide keys know routes. */
export function RoutesPart<Owner>(props: RoutesPartProps<Owner>) {
  const { owner, path, account = false, ifNone, scope, onChanged } = props;
  const open = useSignal(false);
  if (!accountWide.value || !can("senders:read")) return null;
  const { routeIds } = owner;
  return (
    <section class="detail-part" aria-label="Routes">
      <div class="part-head">
        <h3>Routes</h3>
        {can(scope) ? (
          <button type="button" class="button small" onClick={() => (open.value = true)}>
            Choose routes
          </button>
        ) : null}
      </div>
      {routeIds.length === 0 ? (
        <p class="quiet">{capitalized(ifNone)}</p>
      ) : (
        <p>
          {routeIds.map((id, at) => (
            <span key={id}>
              {at === 0 ? null : <span class="quiet"> then </span>}
              <RouteName id={id} />
            </span>
          ))}
        </p>
      )}
      {open.value ? (
        <ChooseRoutes
          name={owner.name}
          routeIds={routeIds}
          ifNone={ifNone}
          onSave={async (chosen) => {
            onChanged(await patch<Owner>(path, { routeIds: chosen }, { account }));
            open.value = false;
          }}
          onClose={() => (open.value = false)}
        />
      ) : null}
    </section>
  );
}

interface ChooseProps {
  name: string;
  routeIds: readonly string[];
  ifNone: string;
  onSave: (routeIds: string[]) => Promise<void>;
  onClose: () => void;
}

function ChooseRoutes({ name, routeIds, ifNone, onSave, onClose }: ChooseProps) {
  const routes = useRoutes().value.value ?? [];
  const chosen = useSignal(PLACES.map((_, at) => routeIds[at] ?? ""));
  const save = () => onSave(chosen.value.filter((id) => id !== ""));
  return (
    <FormDialog title={`Routes of ${name}`} verb="Save routes" onSubmit={save} onClose={onClose}>
      {PLACES.map((label, at) => (
        <SelectField
          key={label}
          label={label}
          name={`routeIds[${at}]`}
          value={placeOf(chosen, at)}
          options={[{ value: "", text: "None" }, ...routeOptions(routes, routeIds[at] ?? "")]}
        />
      ))}
      <p class="hint">
        The next route is tried if no connection or login can be had on one, or if its lane rests. If none is
        chosen, {ifNone}
      </p>
    </FormDialog>
  );
}

/** One place of a list as the value of a field. */
function placeOf(list: Signal<string[]>, at: number): FieldValue {
  return fieldValue(
    () => list.value[at] ?? "",
    (next) => {
      list.value = list.value.with(at, next);
    },
  );
}
