/** Returns a path with a changed query. */
export function changedUrl(
  path: string,
  search: string,
  changes: Readonly<Record<string, string | null>>,
): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Returns the parameters of a path that matches a pattern such as `/messages/:id`, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const found = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== found.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = found[index] ?? "";
    if (part.startsWith(":") && text !== "") params[part.slice(1)] = decoded(text);
    else if (part !== text) return null;
  }
  return params;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
