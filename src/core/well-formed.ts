/** What is doubled, and half of a surrogate pair: JSON has whole pairs as they are, and halves as escapes. */
const BACKSLASHES_OR_HALF = /\\(?:\\|ud[89a-f][0-9a-f]{2})/g;

/**
 * The value with half of a surrogate pair, in whatever text or key of it, replaced. Such a half is no Unicode text: many
 * readers refuse all of a JSON answer that has one.
 */
export function wellFormed<Value extends object>(value: Value): Value {
  const json = JSON.stringify(value);
  if (!json.includes("\\ud")) return value;
  return JSON.parse(json.replace(BACKSLASHES_OR_HALF, (found) => (found === "\\\\" ? found : "\ufffd")));
}
