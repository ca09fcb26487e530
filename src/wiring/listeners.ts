import type { RateBuckets } from "../queue/rate-limiter.ts";
import type { ServerCertificate } from "./certificates.ts";
import { openListener } from "./listener.ts";
import type { Services } from "./services.ts";
import { openSubmission, type Submission } from "./submission.ts";

/** Ports of the SMTP listeners; null if one is off. */
export interface SmtpPorts {
  /** Of incoming mail. */
  smtp: number | null;
  /** Of programs that send: with STARTTLS, and under TLS from the start. */
  submission: number | null;
  submissions: number | null;
}

/** The ports before the listeners start. */
export const NO_SMTP: SmtpPorts = { smtp: null, submission: null, submissions: null };

/** The SMTP listeners of a process. */
export interface Listeners {
  readonly ports: SmtpPorts;
  /** Open sessions. */
  readonly sessions: number;
  /** Stops all of them, as a listener does. */
  stop(graceMs: number): Promise<void>;
}

const NO_SUBMISSION: Submission = { plain: null, secure: null, settled: () => Promise.resolve() };

/** Starts the listeners that the settings turn on. Rejects if a port cannot be bound. @param rates null if there are no submissions */
export async function startListeners(
  services: Services,
  rates: Pick<RateBuckets, "take"> | null,
  certificate: Pick<ServerCertificate, "first" | "onChange">,
): Promise<Listeners> {
  const incoming = openListener(services, certificate.first);
  const { plain, secure, settled } =
    rates === null ? NO_SUBMISSION : openSubmission(services, rates, certificate.first);
  const all = [incoming, plain, secure].filter((listener) => listener !== null);
  const ports: SmtpPorts = {
    smtp: (await incoming.start()).port,
    submission: plain === null ? null : (await plain.start()).port,
    submissions: secure === null ? null : (await secure.start()).port,
  };
  certificate.onChange((renewed) => {
    for (const listener of all) listener.setCertificate(renewed);
  });
  return {
    ports,
    get sessions() {
      return all.reduce((sum, { sessions }) => sum + sessions, 0);
    },
    async stop(graceMs) {
      await Promise.all(all.map((listener) => listener.stop(graceMs)));
      await settled();
    },
  };
}
