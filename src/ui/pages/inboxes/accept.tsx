import type { Signal } from "@preact/signals";
import type { Inbox } from "../../api/types.ts";
import { SelectField } from "../../controls/form.tsx";

/** Whose mail an inbox takes, and what happens to other mail. */
const ACCEPTS: Readonly<Record<Inbox["accept"], { text: string; means: string }>> = {
  anyone: {
    text: "Anyone",
    means: "Mail of all senders is taken, except of those on a block list.",
  },
  authenticated: {
    text: "Senders that DMARC proves",
    means:
      "Mail gets 550 5.7.1 before it is accepted if DMARC does not prove its author, or a block list has the sender.",
  },
  allowed: {
    text: "Senders on the allow list",
    means:
      "Mail gets 550 5.7.1 before it is accepted, unless an allow list has its author and DMARC proves it.",
  },
};

/** The choice of whose mail an inbox takes, with what it means. */
export function AcceptField({ value }: { value: Signal<Inbox["accept"]> }) {
  return (
    <SelectField
      label="Mail from"
      name="accept"
      value={value as Signal<string>}
      options={Object.entries(ACCEPTS).map(([accept, { text }]) => ({ value: accept, text }))}
      hint={ACCEPTS[value.value].means}
    />
  );
}
