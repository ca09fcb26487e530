import {
  createSubmissionHandler,
  refuseRecipient,
  type SubmissionDeps,
} from "../flows/submit/submission-handler.ts";
import { log } from "../log.ts";
import type { RateBuckets } from "../queue/rate-limiter.ts";
import type { Certificate } from "../smtp/listener/certificate.ts";
import { createFailedLogins } from "../smtp/listener/failed-logins.ts";
import { createListener, type Listener, type ListenerOptions } from "../smtp/listener/listener.ts";
import type { LoginRules } from "../smtp/session/login.ts";
import { isLoopback } from "../smtp/listener/peer.ts";
import { trackKeyUse } from "../http/access/key-use.ts";
import { touchKey } from "../store/projects/keys.ts";
import { mxName } from "./delivery.ts";
import { maxSessions } from "./listener.ts";
import type { Services } from "./services.ts";

/** The listeners for programs that send by SMTP. */
export interface Submission {
  /** With STARTTLS; null if it is off. */
  plain: Listener | null;
  /** Under TLS from the start; null if it is off. */
  secure: Listener | null;
  /** Resolves when the use of all keys is recorded. */
  settled(): Promise<void>;
}

/** Makes the listeners for submissions. They do not listen yet. */
export function openSubmission(
  services: Services,
  rates: Pick<RateBuckets, "take">,
  tls: Certificate,
): Submission {
  const { config, clock, db, metrics } = services;
  const keyUse = trackKeyUse((keyId, usedAt) => touchKey(db, keyId, usedAt));
  const handler = createSubmissionHandler(submissionDeps(services, rates, keyUse.note));
  const failedLogins = createFailedLogins(clock);
  const meter = {
    sessionEnded: metrics.smtp.sessionEnded,
    messageRefused: () => metrics.submitted("refused"),
  };
  const open = (port: number | null, options: Pick<ListenerOptions, "implicitTls" | "logins">) =>
    port === null
      ? null
      : createListener(
          { clock, handler, log: log("smtp"), meter, failedLogins },
          {
            host: config.submissionHost,
            port,
            hostname: mxName(config),
            maxMessageBytes: config.maxMessageBytes,
            maxRecipients: config.maxRecipients,
            maxConnections: maxSessions(config),
            maxConnectionsPerIp: config.smtpMaxConnectionsPerIp,
            proxies: config.smtpProxies,
            tls,
            ...options,
          },
        );
  const logins = (ip: string) => loginRules(config, ip);
  return {
    plain: open(config.submissionPort, { logins }),
    secure: open(config.submissionsPort, { logins, implicitTls: true }),
    settled: () => keyUse.settled(),
  };
}

/** Returns how a client logs in. If no message leaves this machine, its own programs need no key. */
export function loginRules(
  {
    delivery,
    submissionInsecureLoopback,
  }: Pick<Services["config"], "delivery" | "submissionInsecureLoopback">,
  ip: string,
): LoginRules {
  const local = isLoopback(ip);
  return {
    required: !(local && delivery === "capture"),
    inPlainText: local && submissionInsecureLoopback,
    recipient: refuseRecipient,
  };
}

function submissionDeps(
  services: Services,
  { take }: Pick<RateBuckets, "take">,
  noteKey: SubmissionDeps["noteKey"],
): SubmissionDeps {
  const { config, metrics } = services;
  return {
    ...services,
    noteKey,
    takeRate: take,
    hostname: mxName(config),
    capture: config.delivery === "capture",
    submitted: metrics.submitted,
  };
}
