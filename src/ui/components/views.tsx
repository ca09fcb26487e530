import { query, urlWith } from "../state/router.ts";

interface ViewsProps {
  /** The name of the choice for screen readers. */
  label: string;
  /** The parameter of the URL that holds the choice. */
  name: string;
  /** The path of the list. A choice closes the detail. */
  path: string;
  /** Id null: the parameter is absent. */
  views: readonly { id: string | null; name: string }[];
}

/** Links that filter a list by one parameter of the URL. */
export function Views({ label, name, path, views }: ViewsProps) {
  const chosen = query.value.get(name);
  return (
    <div class="filters">
      <ul class="views" aria-label={label}>
        {views.map((view) => (
          <li key={view.name}>
            <a
              href={urlWith({ [name]: view.id }, path)}
              aria-current={view.id === chosen ? "true" : undefined}
            >
              {view.name}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
