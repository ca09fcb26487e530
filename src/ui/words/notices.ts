import { capitalized } from "./case.ts";

/** Returns the name of a kind of notice, such as `Webhook failing`. */
export function kindText(kind: string): string {
  return capitalized(kind.replaceAll("_", " "));
}
