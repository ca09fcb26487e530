import type { Mailbox } from "../api/types.ts";

/**
 * Returns the mailboxes in input such as `Ana <ana@example.com>, ben@example.com`. Commas within quotes or angle
 * brackets do not separate. The API checks the addresses themselves.
 */
export function parseMailboxes(text: string): Mailbox[] {
  return splitList(text).map(parseMailbox);
}

function splitList(text: string): string[] {
  const parts: string[] = [];
  let part = "";
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === "\\" && quoted) part += char + (text[++at] ?? "");
    else if (/[,;\n]/.test(char) && !quoted) {
      parts.push(part);
      part = "";
    } else {
      if (char === '"') quoted = !quoted;
      part += char;
    }
  }
  return [...parts, part].map((one) => one.trim()).filter((one) => one !== "");
}

function parseMailbox(text: string): Mailbox {
  const open = text.lastIndexOf("<");
  if (open < 0 || !text.endsWith(">")) return { email: text };
  const name = unquoted(text.slice(0, open).trim());
  const email = text.slice(open + 1, -1).trim();
  return name === "" ? { email } : { email, name };
}

function unquoted(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"') || name.length < 2) return name;
  return name.slice(1, -1).replace(/\\(.)/g, "$1");
}

/** Returns a mailbox as a person writes it. */
export function mailboxText({ email, name }: Mailbox): string {
  if (name === undefined || name === "") return email;
  return /^[\w .'-]+$/.test(name) ? `${name} <${email}>` : `"${name.replace(/(["\\])/g, "\\$1")}" <${email}>`;
}
