import { inboxLocalPart, splitAddress } from "../../core/addresses.ts";
import { simulatorDomain } from "../../core/own-names.ts";
import { type AttemptFacts, type DeliveryReport, noFacts } from "./outcome.ts";

/** The reply of a simulated recipient, by the number of the attempt. */
type Behaviour = (attempt: number) => { code: number; enhanced: string; text: string };

const accepts: Behaviour = () => ({ code: 250, enhanced: "2.0.0", text: "simulated delivery" });

/** Replies of the simulated recipients by their local part (a `+label` is allowed). */
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  delivered: accepts,
  // Delivered first. The complaint comes after it.
  complained: accepts,
  bounced: () => ({ code: 550, enhanced: "5.1.1", text: "simulated: no such user" }),
  "soft-bounced": () => ({ code: 552, enhanced: "5.2.2", text: "simulated: mailbox full" }),
  delayed: (attempt) =>
    attempt === 1 ? { code: 451, enhanced: "4.3.0", text: "simulated: try again later" } : accepts(attempt),
};

const UNKNOWN: Behaviour = () => ({ code: 550, enhanced: "5.1.1", text: "simulated: no such simulator" });

/** Reads own properties only, because a local part may be `constructor`. */
function behaviourOf(name: string): Behaviour {
  return (Object.hasOwn(BEHAVIOURS, name) ? BEHAVIOURS[name] : undefined) ?? UNKNOWN;
}

/** The final state of a simulated recipient after its reply. */
export type SimulatedEnd = "complained" | "rejected" | null;

/** Returns the name of a simulated recipient, for example `bounced`, or null for any other address. */
export function simulatedName(email: string, serviceDomain: string): string | null {
  const split = splitAddress(email);
  return split?.domain === simulatorDomain(serviceDomain) ? inboxLocalPart(split.local) : null;
}

/** Returns the final state of the name, if no reply leads to it. */
export function simulatedEnd(name: string): SimulatedEnd {
  return name === "complained" || name === "rejected" ? name : null;
}

/** Returns the report of an attempt at a simulated recipient. Nothing leaves this machine. */
export function simulatedReport(name: string, attempt: number, startedAt: number): DeliveryReport {
  const facts: AttemptFacts = { ...noFacts(startedAt), mx: "simulator" };
  const reply = { stage: "rcpt", ...behaviourOf(name)(attempt) };
  return reply.code < 400
    ? { ...facts, kind: "accepted", reply: { ...reply, stage: "final" } }
    : { ...facts, kind: "refused", reply };
}
