import { query, urlWith } from "../state/router.ts";

interface ViewLinksProps {
  /** The name of the choice for screen readers. */
  label: string;
  /** The path of the list. A choice closes the detail. */
  path: string;
  /** Names, each with the parameters of the URL that choose it. Null: the parameter is absent. */
  views: readonly { name: string; query: Readonly<Record<string, string | null>> }[];
}

/** Links that filter a list by parameters of the URL. */
export function ViewLinks({ label, path, views }: ViewLinksProps) {
  const isChosen = ([name, value]: [string, string | null]) => query.value.get(name) === value;
  return (
    <ul class="views" aria-label={label}>
      {views.map((view) => (
        <li key={view.name}>
          <a
            href={urlWith(view.query, path)}
            aria-current={Object.entries(view.query).every(isChosen) ? "true" : undefined}
          >
            {view.name}
          </a>
        </li>
      ))}
    </ul>
  );
}

interface ViewsProps extends Omit<ViewLinksProps, "views"> {
  /** The parameter of the URL that holds the choice. */
  name: string;
  /** Id null: the parameter is absent. */
  views: readonly { id: string | null; name: string }[];
}

/** A bar with the links that filter a list by one parameter of the URL. */
export function Views({ name, views, ...rest }: ViewsProps) {
  return (
    <div class="filters">
      <ViewLinks {...rest} views={views.map((view) => ({ name: view.name, query: { [name]: view.id } }))} />
    </div>
  );
}
