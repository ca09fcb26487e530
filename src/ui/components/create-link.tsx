import { Icon } from "../controls/icon.tsx";
import { urlWith } from "../state/router.ts";
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
