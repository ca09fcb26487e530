import type { ReadItem } from "../../core/messages/send-item.ts";
import { firstChars } from "../../core/text.ts";
import { CLIPPED_OCTETS } from "../../mail/text/findings.ts";

/** A possible effect of an accepted send that its client may not expect. */
export interface SendWarning {
  /** JSON path of the field. */
  param: string;
  message: string;
}

/** Maximum number of variables that one warning names. */
export const MAX_NAMED = 10;
/** Maximum characters shown of a variable's name. */
const MAX_NAME_CHARS = 100;

/**
 * Returns the warnings of a send.
 * @param variables full paths of its template's variables
 * @param clipped whether Gmail would hide the end of its html
 */
export function sendWarnings(item: ReadItem, variables: readonly string[], clipped: boolean): SendWarning[] {
  return [...missingVariables(item, variables), ...replacedHeaders(item), ...(clipped ? [CLIPPED] : [])];
}

const CLIPPED: SendWarning = {
  param: "html",
  message: `With tracked links it has more than ${CLIPPED_OCTETS} octets, after which Gmail hides the rest.`,
};

function missingVariables(
  { data = {}, unsubscribeLink }: ReadItem,
  variables: readonly string[],
): SendWarning[] {
  const given = unsubscribeLink === true ? { unsubscribeUrl: "", ...data } : data;
  const missing = variables.filter((name) => isMissing(given, name));
  if (missing.length === 0) return [];
  const named = missing.slice(0, MAX_NAMED).map((name) => firstChars(name, MAX_NAME_CHARS));
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : "";
  const message = `The template uses ${named.join(", ")}${more}, for which the data has no value.`;
  return [{ param: "data", message }];
}

/** A name at the beginning of a path or after its dot, or the place of an item. */
const NAME = /^(?:\.?([^.[\]]+)|\[(\d+)\])/;
/** Names that Liquid also reads from lists and strings. */
const OWN_NAMES: ReadonlySet<string> = new Set(["size", "first", "last"]);

/**
 * Returns true if the data has nothing at a variable's path. The path is followed while it has names with dots and places. A
 * value read by a name in brackets counts as present.
 */
function isMissing(data: Readonly<Record<string, unknown>>, path: string): boolean {
  let value: unknown = data;
  let rest = path;
  for (let found = NAME.exec(rest); found !== null; found = NAME.exec(rest)) {
    const [step, word, place] = found;
    const name = word ?? place ?? "";
    const holder: unknown = value;
    if (holder === null || holder === undefined) return true;
    if (typeof holder === "object" && Object.hasOwn(holder, name)) value = Reflect.get(holder, name);
    else return !OWN_NAMES.has(name) || holder === data;
    rest = rest.slice(step.length);
  }
  return value === undefined;
}

/** Warns of the client's own unsubscribe headers, which those of `unsubscribeLink` replace. */
function replacedHeaders({ headers = {}, unsubscribeLink }: ReadItem): SendWarning[] {
  if (unsubscribeLink !== true) return [];
  return Object.keys(headers)
    .filter((name) => /^list-unsubscribe(?:-post)?$/i.test(name))
    .map((name) => ({
      param: `headers.${name}`,
      message: "Is not sent, because unsubscribeLink sets this header. Leave out one of them.",
    }));
}
