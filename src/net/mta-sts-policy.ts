/** Maximum lifetime of a policy: one year and a day (RFC 8461 §3.2). A longer one is reduced. */
export const MAX_POLICY_AGE_SECONDS = 31_557_600;
/** MX patterns in one policy. If there are more, the policy is invalid. */
export const MAX_MX_PATTERNS = 100;
/** Maximum characters of all its patterns together, because thousands of policies are in memory. */
export const MAX_MX_CHARS = 8192;
/** Maximum octets of a policy (RFC 8461 §3.3 suggests this limit). */
export const MAX_POLICY_OCTETS = 64 * 1024;
/** Maximum digits of `max_age` (RFC 8461 §3.2). */
const MAX_AGE = /^[0-9]{1,10}$/;

export type StsMode = "enforce" | "testing" | "none";

/** Requirements of a domain for mail sent to it (RFC 8461 §3.2). */
export interface StsPolicy {
  mode: StsMode;
  /** Lower-case names of MX hosts. A first label `*` matches any one label. */
  mx: readonly string[];
  maxAgeSeconds: number;
}

const RECORD_START = /^v=STSv1[ \t]*;/;
/** RFC 8461 §3.1: fields after the version. Values have no `=`, `;`, space or control character. */
const RECORD_FIELD = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31})=([\x21-\x3a\x3c\x3e-\x7e]+)$/;
const RECORD_ID = /^[A-Za-z0-9]{1,32}$/;

/**
 * Returns the id in the TXT records at `_mta-sts.<domain>`, or null if there is no policy. Records of other kinds are
 * ignored; if two records begin with the version, neither counts (RFC 8461 §3.1).
 */
export function readStsId(texts: readonly string[]): string | null {
  const [record, ...others] = texts.filter((text) => RECORD_START.test(text));
  if (record === undefined || others.length > 0) return null;
  const parts = record.split(";").slice(1);
  // The record may end with `;`.
  if (parts.at(-1)?.trim() === "") parts.pop();
  const fields = parts.map((part) => RECORD_FIELD.exec(part.trim()));
  if (fields.includes(null)) return null;
  const id = fields.find((field) => field?.[1] === "id")?.[2];
  return id !== undefined && RECORD_ID.test(id) ? alone(id) : null;
}

/** Copies an ASCII text. A slice would keep the whole text in memory, and thousands of policies are remembered. */
function alone(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const PATTERN = new RegExp(`^(?:\\*\\.)?(?:${LABEL}\\.)*${LABEL}$`);
const MAX_NAME_CHARS = 253;
/** White space around the value is trimmed separately: a pattern for it could take minutes (ReDoS). */
const FIELD = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31}):([^\x00-\x08\x0a-\x1f\x7f]*)$/;
const MODES: readonly StsMode[] = ["enforce", "testing", "none"];

/** Parses a policy. Returns null if it is invalid. Unknown fields are ignored (RFC 8461 §3.2). */
export function parseStsPolicy(octets: Uint8Array): StsPolicy | null {
  if (octets.length > MAX_POLICY_OCTETS) return null;
  const fields = readFields(Buffer.from(octets).toString("utf8"));
  if (fields === null) return null;
  // If a field is repeated, the first one counts (RFC 8461 §3.2).
  const first = (name: string): string => fields.find(([key]) => key === name)?.[1] ?? "";
  const mode = MODES.find((known) => known === first("mode"));
  const mx = fields.filter(([key]) => key === "mx").map(([, value]) => value.toLowerCase());
  if (first("version") !== "STSv1" || mode === undefined || !MAX_AGE.test(first("max_age"))) return null;
  if (mx.length > MAX_MX_PATTERNS || mx.join("").length > MAX_MX_CHARS || !mx.every(isPattern)) return null;
  if (mode !== "none" && mx.length === 0) return null;
  const maxAgeSeconds = Math.min(Number(first("max_age")), MAX_POLICY_AGE_SECONDS);
  return { mode, mx: mx.map(alone), maxAgeSeconds };
}

/** Returns the fields, or null if a line is not a field. Lines end with CRLF or LF. */
function readFields(text: string): [name: string, value: string][] | null {
  const lines = text.trimEnd().split(/\r?\n/);
  const fields: [string, string][] = [];
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    fields.push([name, value.trim()]);
  }
  return fields;
}

function isPattern(text: string): boolean {
  return text.length <= MAX_NAME_CHARS && PATTERN.test(text);
}

/** Checks whether a policy names an MX host (RFC 8461 §4.1). A wildcard matches the whole left-most label. */
export function namesHost(policy: StsPolicy, host: string): boolean {
  const name = host.toLowerCase();
  const parent = name.slice(name.indexOf(".") + 1);
  return policy.mx.some((pattern) =>
    pattern.startsWith("*.") ? name !== parent && pattern.slice(2) === parent : pattern === name,
  );
}
