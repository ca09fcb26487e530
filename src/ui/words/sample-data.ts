type Data = Record<string, unknown>;

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the JSON object in a string, or null. */
export function parseData(text: string): Data | null {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return isData(value) ? value : null;
  } catch {
    return null;
  }
}

/** Puts a sample at a path such as `user.name`, unless something is there. */
function fill(data: Data, path: string): void {
  const parts = path.split(".");
  const last = parts.pop() ?? path;
  let place = data;
  for (const part of parts) {
    if (!Object.hasOwn(place, part)) Object.defineProperty(place, part, { ...OWN, value: {} });
    const next = place[part];
    if (!isData(next)) return;
    place = next;
  }
  if (!Object.hasOwn(place, last)) Object.defineProperty(place, last, { ...OWN, value: last });
}

/** Defining a property, other than setting it, is safe for a name such as `__proto__`. */
const OWN = { configurable: true, enumerable: true, writable: true };

/** Returns what a field shows of the value at a path such as `user.name`: a string as it is, and other values as JSON. */
export function fieldOf(text: string, path: string): string {
  let value: unknown = parseData(text);
  for (const part of path.split("."))
    value = isData(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
}

/** Returns the JSON of data with the input of a field at a path. Input that is a JSON list or object is stored as that. */
export function withField(text: string, path: string, input: string): string {
  const data = parseData(text) ?? {};
  const parts = path.split(".");
  const last = parts.pop() ?? path;
  let place = data;
  for (const part of parts) {
    if (!(Object.hasOwn(place, part) && isData(place[part])))
      Object.defineProperty(place, part, { ...OWN, value: {} });
    place = place[part] as Data;
  }
  Object.defineProperty(place, last, { ...OWN, value: valueIn(input) });
  return JSON.stringify(data, null, 2);
}

function valueIn(input: string): unknown {
  if (!/^\s*[[{]/.test(input)) return input;
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}

/** Returns data with a sample for each variable: its own name. */
export function sampleData(variables: readonly string[]): Data {
  const data: Data = {};
  for (const path of variables) fill(data, path);
  return data;
}

/** Returns the JSON of data with samples for the variables that it lacks. */
export function withMissing(text: string, missing: readonly string[]): string {
  const data = parseData(text) ?? {};
  for (const path of missing) fill(data, path);
  return JSON.stringify(data, null, 2);
}
