import { expect, test } from "bun:test";
import { resendName } from "../../../../src/core/messages/resend-events.ts";

test.each<
  [type: Parameters<typeof resendName>[0]["type"], data: Record<string, unknown>, name: string | null]
>([
  ["accepted", { accepted: { scheduledAt: "2026-01-01T00:00:00Z" } }, "email.scheduled"],
  ["accepted", {}, null],
  ["sending", { sending: { attempt: 1 } }, "email.sent"],
  ["sending", { sending: { attempt: 2 } }, null],
  ["sending", {}, null],
  ["rejected", { rejected: { reason: "suppressed" } }, "email.suppressed"],
  ["rejected", { rejected: { reason: "unsubscribed" } }, "email.suppressed"],
  ["rejected", { rejected: { reason: "quota" } }, "email.failed"],
  ["delivery", {}, "email.delivered"],
  ["delivery", { rejected: { reason: "suppressed" } }, "email.delivered"],
  ["delivery_delayed", {}, "email.delivery_delayed"],
  ["bounce", {}, "email.bounced"],
  ["complaint", {}, "email.complained"],
  ["open", {}, "email.opened"],
  ["click", {}, "email.clicked"],
  ["inbound_received", {}, "email.received"],
  ["failed", {}, "email.failed"],
  ["rendering_failure", {}, "email.failed"],
])("the event %s with %j has the name %p in Resend's dialect", (type, data, name) => {
  expect(resendName({ type, data } as Parameters<typeof resendName>[0])).toBe(name as never);
});
