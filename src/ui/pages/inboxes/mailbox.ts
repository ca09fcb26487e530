import { signal } from "@preact/signals";
import { get } from "../../api/client.ts";
import { type Resource, useReloadAfter, useResource } from "../../api/resource.ts";
import type { Labelling } from "../../api/types.ts";
import { isMe } from "../../state/reader.ts";

/** Counts the changes of labels that this tab has made. */
export const labelChanges = signal(0);

/** The labels in use, and the members whom threads can be assigned to. */
export function useMailbox(): Resource<Labelling> {
  const mailbox = useResource("mailbox", () => get<Labelling>("/v1/mailbox"));
  useReloadAfter(labelChanges.value, mailbox.reload);
  return mailbox;
}

/** Returns the members, the reader first. */
export function membersOf(mailbox: Labelling | null): Labelling["members"] {
  const members = mailbox?.members ?? [];
  return [...members.filter(({ id }) => isMe(id)), ...members.filter(({ id }) => !isMe(id))];
}

/** Returns how a list names a member: `me`, or the address without its domain. */
export function memberName(mailbox: Labelling | null, id: string): string {
  if (isMe(id)) return "me";
  const email = mailbox?.members.find((member) => member.id === id)?.email;
  return email?.split("@")[0] ?? "someone";
}
