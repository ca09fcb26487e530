import { Icon } from "../controls/icon.tsx";
import { query, urlWith } from "../state/router.ts";
import { can } from "../state/session.ts";

interface CreateLinkProps {
  /** The scope that creating needs. Without it there is no link. */
  scope: string;
  /** A verb with its object: `Create contact`. */
  text: string;
  /** The parameter of the URL that opens the form. */
  opens?: string;
  plus?: boolean;
}

/** Returns whether the URL opens a form that the reader may submit. A link, the history and a shortcut can lead to one. */
export function opensForm(scope: string, name = "create"): boolean {
  return query.value.has(name) && can(scope);
}

/** A link that opens the form for another record. */
export function CreateLink({ scope, text, opens = "create", plus = false }: CreateLinkProps) {
  if (!can(scope)) return null;
  return (
    <a class="button primary" href={urlWith({ [opens]: "1" })}>
      {plus ? <Icon name="plus" /> : null}
      {text}
    </a>
  );
}
