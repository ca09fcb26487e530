// Message-IDs that we make: of a message, and of single copies of it.

/** A Message-ID of ours, with the number of its recipient if only that copy has it. */
const OURS = /^<(msg_[0-9a-z]{26})(?:\.(\d{1,5}))?@([^@>]+)>$/;

/** Returns the Message-ID of a message from a domain. */
export function ownMessageId(id: string, domain: string): string {
  return `<${id}@${domain}>`;
}

/** Returns the Message-ID of one recipient's copy of a message. One that the author chose stays. */
export function copyMessageId(shared: string, id: string, ord: number): string {
  return readMessageId(shared)?.id === id ? shared.replace("@", `.${ord}@`) : shared;
}

/** A Message-ID of ours, taken apart. */
export interface OwnMessageId {
  id: string;
  /** The recipient whose copy has it; null: all copies have it. */
  ord: number | null;
  /** The Message-ID of the message. */
  shared: string;
}

/** Reads a Message-ID of our form; null if it has another. Anyone can write one. */
export function readMessageId(rfcMessageId: string): OwnMessageId | null {
  const [, id, ord, domain = ""] = OURS.exec(rfcMessageId) ?? [];
  if (id === undefined) return null;
  return { id, ord: ord === undefined ? null : Number(ord), shared: ownMessageId(id, domain) };
}

/** Returns the Message-ID under which a message is stored, for that of any of its copies. */
export function sharedMessageId(rfcMessageId: string): string {
  return readMessageId(rfcMessageId)?.shared ?? rfcMessageId;
}
