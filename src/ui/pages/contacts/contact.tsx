import type { Contact } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";

/** Returns the name of a contact; empty if it has none. */
export function nameOf({ firstName, lastName }: Contact): string {
  return [firstName, lastName].filter((part) => part !== null && part !== "").join(" ");
}

/** Tells if a contact is subscribed. */
export function SubscriptionDot({ subscribed }: { subscribed: boolean }) {
  return <Dot tone={subscribed ? "good" : "quiet"} word={subscribed ? "Subscribed" : "Unsubscribed"} />;
}
