/** Fields of `/v1` whose names in Resend's API differ by more than case. */
const THEIR_NAMES: Readonly<Record<string, string>> = {
  templateId: "template.id",
  data: "template.variables",
  firstName: "first_name",
  lastName: "last_name",
  metadata: "properties",
  subscribed: "unsubscribed",
  url: "endpoint",
  eventTypes: "events",
  domain: "name",
  enabled: "capabilities.receiving",
  slug: "alias",
  scopes: "permission",
};
/** Fields whose own keys are the client's words. */
const MAPS = /^(?:data|metadata|properties|headers|template\.variables)(?=\.|$)/;

/** Returns Resend's name of a field of `/v1`. */
export function theirName(ours: string): string {
  return THEIR_NAMES[ours] ?? inSnakeCase(ours);
}

function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns Resend's path of a field: `attachments[0].contentId` becomes `attachments[0].content_id`. */
function theirPath(path: string): string {
  const [, item = "", rest = ""] = /^(?:emails(?=\[))?(\[\d+\]\.?)?(.*)$/s.exec(path) ?? [];
  const map = MAPS.exec(rest)?.[0];
  if (map !== undefined) return `${item}${THEIR_NAMES[map] ?? map}${rest.slice(map.length)}`;
  const [name = ""] = /^[^.[]*/.exec(rest) ?? [];
  return `${item}${theirName(name)}${inSnakeCase(rest.slice(name.length))}`;
}

/** A name of several words, as fields of `/v1` have. */
const CAMEL = /(?<![\w.`"'/-])[a-z]{2,20}(?:[A-Z][a-z]{1,20}){1,3}(?![\w.@/-])(?! of (?:POST|PATCH|PUT) )/g;

/** A field in quotes, or before the colon with which a message begins. */
const NAMED = /"([^"\s]{1,200})"|^([^"\s:]{1,200})(?=: )/g;

/**
 * Returns a message that names fields as Resend does: `"replyTo[0]" must…` becomes `"reply_to[0]" must…`.
 * @param param path of the field that the message is about
 */
export function inTheirWords(message: string, param = ""): string {
  return message
    .replace(CAMEL, theirName)
    .replace(NAMED, (all, quoted: string | undefined, bare: string | undefined, at: number) => {
      const path = quoted ?? bare ?? "";
      const isField =
        at === 0 ||
        path === param ||
        (param !== "" && (path.startsWith(`${param}.`) || param.endsWith(`.${path}`)));
      return isField ? all.replace(path, () => theirPath(path)) : all;
    });
}
