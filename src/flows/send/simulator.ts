import { inboxLocalPart, splitAddress } from "../../core/addresses.ts";
import { simulatorDomain } from "../own-names.ts";
import { type AttemptFacts, type DeliveryReport, noFacts } from "./outcome.ts";

/** What a simulated recipient answers, by the number of the try. */
type Behaviour = (attempt: number) => { code: number; enhanced: string; text: string };

const accepts: Behaviour = () => ({ code: 250, enhanced: "2.0.0", text: "simulated delivery" });

/** How the simulated recipients answer, by their local part (a `+label` is allowed). */
const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  delivered: accepts,
  // Delivered first; the complaint comes behind it.
  complained: accepts,
  bounced: () => ({ code: 550, enhanced: "5.1.1", text: "simulated: no such user" }),
  "soft-bounced": () => ({ code: 552, enhanced: "5.2.2", text: "simulated: mailbox full" }),
  delayed: (attempt) =>
    attempt === 1 ? { code: 451, enhanced: "4.3.0", text: "simulated: try again later" } : accepts(attempt),
};

const UNKNOWN: Behaviour = () => ({ code: 550, enhanced: "5.1.1", text: "simulated: no such simulator" });

/** By own names only: a local part may be called `constructor`. */
function behaviourOf(name: string): Behaviour {
  return (Object.hasOwn(BEHAVIOURS, name) ? BEHAVIOURS[name] : undefined) ?? UNKNOWN;
}

/** What a simulated recipient does besides answering. */
export type SimulatedEnd = "complained" | "rejected" | null;

/** The name of a simulated recipient, e.g. `bounced`; null for an address that is none. */
export function simulatedName(email: string, serviceDomain: string): string | null {
  const split = splitAddress(email);
  return split?.domain === simulatorDomain(serviceDomain) ? inboxLocalPart(split.local) : null;
}

/** Whether the name ends in a state that no reply leads to. */
export function simulatedEnd(name: string): SimulatedEnd {
  return name === "complained" || name === "rejected" ? name : null;
}

/** The report of a try at a simulated recipient: nothing leaves the machine. */
export function simulatedReport(name: string, attempt: number, startedAt: number): DeliveryReport {
  const facts: AttemptFacts = { ...noFacts(startedAt), mx: "simulator" };
  const reply = { stage: "rcpt", ...behaviourOf(name)(attempt) };
  return reply.code < 400
    ? { ...facts, kind: "accepted", reply: { ...reply, stage: "final" } }
    : { ...facts, kind: "refused", reply };
}
