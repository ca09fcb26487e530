import type { Mailbox, SendItem } from "../api/types.ts";
import { mailboxText } from "./addresses.ts";

/** Quotes a string for a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Facts that a piece of code needs. */
export interface CodeContext {
  /** Address of the service. */
  origin: string;
  /** Name of the project for an account-wide key; null if the key implies it. */
  project: string | null;
}

/** Characters of an attachment that are shown in code; the rest is replaced by dots. */
const SHOWN_CONTENT = 24;

/**
 * Returns the item as code shows it: addresses as strings, and long attachments cut, because no person reads
 * base64.
 */
function shown(item: SendItem): object {
  const { from, to, cc, bcc, replyTo, attachments, ...rest } = item;
  const cut = (content: string) =>
    content.length > SHOWN_CONTENT ? `${content.slice(0, SHOWN_CONTENT)}…` : content;
  const lists = Object.entries({ to, cc, bcc, replyTo }).filter(([, list]) => list !== undefined);
  return {
    from: mailboxText(from),
    ...Object.fromEntries(lists.map(([name, list]) => [name, listOf(list ?? [])])),
    ...rest,
    ...(attachments === undefined
      ? {}
      : { attachments: attachments.map((file) => ({ ...file, content: cut(file.content) })) }),
  };
}

/** Returns one address as a string, and several as a list. */
function listOf(mailboxes: readonly Mailbox[]): string | string[] {
  const [only] = mailboxes;
  return only !== undefined && mailboxes.length === 1 ? mailboxText(only) : mailboxes.map(mailboxText);
}

/** Returns a request as a curl command. */
export function curlText(
  method: string,
  path: string,
  body: unknown,
  { origin, project }: CodeContext,
): string {
  // `--json` sets the method POST and the content type.
  const verb = method === "GET" || (method === "POST" && body !== undefined) ? "" : `-X ${method} `;
  const lines = [`curl ${verb}${origin}${path}`, `-H "Authorization: Bearer $KEY"`];
  if (project !== null) lines.push(`-H ${shellWord(`X-Service-Product: ${project}`)}`);
  if (body !== undefined) lines.push(`--json ${shellWord(bodyText(body))}`);
  return lines.join(" \\\n  ");
}

/** Longest body that stands on one line, characters. */
const LINE_CHARS = 100;

function bodyText(body: unknown): string {
  const line = JSON.stringify(body);
  return line.length <= LINE_CHARS ? line : JSON.stringify(body, null, 2);
}

/** Returns a send as a curl command. */
export function sendAsCurl(item: SendItem, context: CodeContext): string {
  return curlText("POST", "/v1/emails", shown(item), context);
}

/** Returns a send as TypeScript with the client `postrider`, which reads the key from POSTRIDER_API_KEY. */
export function sendAsTypeScript(item: SendItem, { origin, project }: CodeContext): string {
  const options = [`baseUrl: ${JSON.stringify(origin)}`];
  if (project !== null) options.push(`project: ${JSON.stringify(project)}`);
  return `import { Postrider } from "postrider";

const client = new Postrider({ ${options.join(", ")} });

const { id } = await client.emails.send(${literal(shown(item))});`;
}

/** Returns a value as a TypeScript literal, with names unquoted if they may be. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/^(\s*)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");
}
