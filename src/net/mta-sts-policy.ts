/** A policy lives a year and a day at most (RFC 8461 §3.2); a longer life is cut to this. */
export const MAX_POLICY_AGE_SECONDS = 31_557_600;
/** Patterns of MX hosts in one policy; one with more is no policy. */
export const MAX_MX_PATTERNS = 100;
/** Characters of all its patterns together: thousands of policies are held in memory. */
export const MAX_MX_CHARS = 8192;
/** Octets of a policy's text (RFC 8461 §3.3 suggests this bound). */
export const MAX_POLICY_OCTETS = 64 * 1024;
/** Digits of `max_age` (RFC 8461 §3.2). */
const MAX_AGE = /^[0-9]{1,10}$/;

export type StsMode = "enforce" | "testing" | "none";

/** What a domain asks of those who send to it (RFC 8461 §3.2). */
export interface StsPolicy {
  mode: StsMode;
  /** Lower-case names of MX hosts; a first label `*` stands for any one label. */
  mx: readonly string[];
  maxAgeSeconds: number;
}

const RECORD_START = /^v=STSv1[ \t]*;/;
/** RFC 8461 §3.1: fields behind the version; values hold no `=`, `;`, space or control character. */
const RECORD_FIELD = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31})=([\x21-\x3a\x3c\x3e-\x7e]+)$/;
const RECORD_ID = /^[A-Za-z0-9]{1,32}$/;

/**
 * The id in the TXT records at `_mta-sts.<domain>`; null where they say that there is no policy. Records of other kinds
 * are passed over; of two that begin like ours neither counts (RFC 8461 §3.1).
 */
export function readStsId(texts: readonly string[]): string | null {
  const [record, ...others] = texts.filter((text) => RECORD_START.test(text));
  if (record === undefined || others.length > 0) return null;
  const parts = record.split(";").slice(1);
  // One `;` may end the record.
  if (parts.at(-1)?.trim() === "") parts.pop();
  const fields = parts.map((part) => RECORD_FIELD.exec(part.trim()));
  if (fields.includes(null)) return null;
  const id = fields.find((field) => field?.[1] === "id")?.[2];
  return id !== undefined && RECORD_ID.test(id) ? alone(id) : null;
}

/**
 * The same ASCII text in memory of its own: one that is cut out of a larger text keeps all of that in memory, and policies are
 * remembered by the thousand.
 */
function alone(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const PATTERN = new RegExp(`^(?:\\*\\.)?(?:${LABEL}\\.)*${LABEL}$`);
const MAX_NAME_CHARS = 253;
/** Spaces about the value are cut off apart: an expression that did it could be made to try for minutes (ReDoS). */
const FIELD = /^([A-Za-z0-9][A-Za-z0-9_.-]{0,31}):([^\x00-\x08\x0a-\x1f\x7f]*)$/;
const MODES: readonly StsMode[] = ["enforce", "testing", "none"];

/** Reads a policy's text; null where it is none. Fields that nobody knows are passed over (RFC 8461 §3.2). */
export function parseStsPolicy(octets: Uint8Array): StsPolicy | null {
  if (octets.length > MAX_POLICY_OCTETS) return null;
  const fields = readFields(Buffer.from(octets).toString("utf8"));
  if (fields === null) return null;
  // Of a field that may be there once the first one counts (RFC 8461 §3.2).
  const first = (name: string): string => fields.find(([key]) => key === name)?.[1] ?? "";
  const mode = MODES.find((known) => known === first("mode"));
  const mx = fields.filter(([key]) => key === "mx").map(([, value]) => value.toLowerCase());
  if (first("version") !== "STSv1" || mode === undefined || !MAX_AGE.test(first("max_age"))) return null;
  if (mx.length > MAX_MX_PATTERNS || mx.join("").length > MAX_MX_CHARS || !mx.every(isPattern)) return null;
  if (mode !== "none" && mx.length === 0) return null;
  const maxAgeSeconds = Math.min(Number(first("max_age")), MAX_POLICY_AGE_SECONDS);
  return { mode, mx: mx.map(alone), maxAgeSeconds };
}

/** The lines taken apart; null where one is no field. Lines end with CRLF or LF, the last one as it likes. */
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

/** Whether a policy names an MX host (RFC 8461 §4.1): a wildcard stands for the left-most label, whole and alone. */
export function namesHost(policy: StsPolicy, host: string): boolean {
  const name = host.toLowerCase();
  const parent = name.slice(name.indexOf(".") + 1);
  return policy.mx.some((pattern) =>
    pattern.startsWith("*.") ? name !== parent && pattern.slice(2) === parent : pattern === name,
  );
}
