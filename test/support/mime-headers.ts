/** The header of a MIME entity, and those of its parts. */
export interface Entity {
  /** Lower-case names, in order. */
  names: string[];
  parts: Entity[];
}

/** Deepest nesting of entities that is read. */
const MAX_DEPTH = 8;

/**
 * Returns the field names of the entity and of its parts. Throws if a header line is neither a field nor a
 * continuation.
 */
function readEntity(bytes: string, depth = 0): Entity {
  const end = bytes.indexOf("\r\n\r\n");
  const header = end < 0 ? bytes : bytes.slice(0, end);
  const fields = header
    .replace(/\r\n[ \t]+/g, " ")
    .split("\r\n")
    .filter((line) => line !== "");
  const names = fields.map((field) => {
    const name = /^([\x21-\x39\x3b-\x7e]+):/.exec(field)?.[1];
    if (name === undefined) throw new Error(`no header field: ${JSON.stringify(field.slice(0, 80))}`);
    return name.toLowerCase();
  });
  const type = fields.find((field) => /^content-type:\s*multipart\//i.test(field));
  const boundary = /boundary="?([^";]+)"?/i.exec(type ?? "")?.[1];
  if (boundary === undefined || depth >= MAX_DEPTH) return { names, parts: [] };
  const pieces = `\r\n${bytes.slice(end + 4)}`.split(`\r\n--${boundary}`);
  const parts = pieces.slice(1).filter((piece) => !piece.startsWith("--"));
  return { names, parts: parts.map((piece) => readEntity(piece.replace(/^[ \t]*\r\n/, ""), depth + 1)) };
}

/** Fields that the service itself writes into outgoing messages, or puts before incoming ones. */
const OWN = [
  "from",
  "to",
  "cc",
  "reply-to",
  "subject",
  "message-id",
  "date",
  "mime-version",
  "content-type",
  "content-transfer-encoding",
  "content-disposition",
  "content-id",
  "dkim-signature",
  "in-reply-to",
  "references",
  "feedback-id",
  "list-id",
  "list-unsubscribe",
  "list-unsubscribe-post",
  "return-path",
  "received",
  "authentication-results",
];
const PART = ["content-type", "content-transfer-encoding", "content-disposition", "content-id"];
/** May occur more than once. */
const REPEATED = ["received", "dkim-signature"];

/** Returns the faults of a message's bytes, apart from fields that the client asked for. */
export function wireFaults(bytes: string, asked: readonly string[]): string[] {
  const faults: string[] = [];
  if (/\r(?!\n)|(?<!\r)\n/.test(bytes)) faults.push("a bare CR or LF");
  if (bytes.includes("\0")) faults.push("NUL");
  if (bytes.split("\r\n").some((line) => line.length > 998)) faults.push("a line of over 998 octets");
  const whole = readEntity(bytes);
  const known = new Set([...OWN, ...asked.map((name) => name.toLowerCase())]);
  for (const name of whole.names) if (!known.has(name)) faults.push(`the field ${name}, not asked for`);
  const once = whole.names.filter((name) => !REPEATED.includes(name));
  for (const name of new Set(once))
    if (once.filter((each) => each === name).length > 1) faults.push(`the field ${name} twice`);
  const inner = (entity: Entity): void => {
    for (const part of entity.parts) {
      for (const name of part.names) if (!PART.includes(name)) faults.push(`the field ${name} in a part`);
      inner(part);
    }
  };
  inner(whole);
  return faults;
}
