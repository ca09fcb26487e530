import type { Webhook } from "../../api/types.ts";
import { Dot } from "../../components/status.tsx";

/** The state of a webhook as a dot with its word. */
export function WebhookStatus({ webhook }: { webhook: Webhook }) {
  const { enabled, disabledReason, failingSince } = webhook;
  if (enabled && failingSince !== null) return <Dot tone="late" word="Failing" />;
  if (enabled) return <Dot tone="good" word="Enabled" />;
  return <Dot tone={disabledReason === null ? "quiet" : "bad"} word="Disabled" />;
}

/** Event types that a row names before it counts the rest. */
const NAMED_TYPES = 3;

/** Returns the event types of a webhook in a few words. */
export function typesText(types: readonly string[]): string {
  if (types.includes("*")) return "All events";
  const rest = types.length - NAMED_TYPES;
  return types.slice(0, NAMED_TYPES).join(", ") + (rest > 0 ? ` +${rest}` : "");
}
