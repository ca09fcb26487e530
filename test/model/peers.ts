import type { DeliveryReport, Shipment } from "../../src/flows/deliver/outcome.ts";

/** Replies of peers to RCPT, by domain. All other domains accept. */
const ANSWERS: Readonly<Record<string, { code: number; enhanced: string; text: string }>> = {
  "gone.example": { code: 550, enhanced: "5.1.1", text: "no such user" },
  "full.example": { code: 552, enhanced: "5.2.2", text: "mailbox full" },
  "block.example": { code: 550, enhanced: "5.7.1", text: "not wanted here" },
  "later.example": { code: 451, enhanced: "4.3.0", text: "try again later" },
};

/** The reply of a model peer to a message. */
export function peerAnswer({ domain }: Shipment, startedAt: number): DeliveryReport {
  const facts = { mx: `mx.${domain}`, ip: null, tls: null, transcript: [], startedAt, durationMs: 0 };
  const refusal = ANSWERS[domain];
  return refusal === undefined
    ? { ...facts, kind: "accepted", reply: { stage: "final", code: 250, enhanced: "2.0.0", text: "ok" } }
    : { ...facts, kind: "refused", reply: { stage: "rcpt", ...refusal } };
}
