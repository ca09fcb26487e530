import { COMPLAINT_MAILBOX, DMARC_MAILBOX, TLS_REPORT_MAILBOX } from "../../../core/own-names.ts";
import { isInNetworks, reachableAddress } from "../../../core/networks.ts";
import type { Clock } from "../../../core/time/clock.ts";
import { shortTimeouts, type Timeouts } from "../../../smtp/client/delivery.ts";
import { type OpenSession, openSession } from "../../../smtp/client/open-session.ts";
import { isSuccess, replyText } from "../../../smtp/client/reply-parser.ts";
import { type Check, fail, type Finding, ok, warn } from "../check.ts";

export interface ListenerParts {
  clock: Clock;
  /** Our name in banner and certificate. */
  hostname: string;
  serviceDomain: string;
  /** Address and port at which our listener listens. */
  host: string;
  port: number;
  /** Networks of proxies, whose connections begin with a header that we do not send. */
  proxies: readonly string[];
}

/** Timeouts of the connection and of each reply, milliseconds. Together they are less than the limit of a check. */
const [CONNECT_MS, REPLY_MS] = [500, 700];
/** Mailboxes that providers and readers write to. */
const MAILBOXES: readonly string[] = [
  "postmaster",
  "abuse",
  COMPLAINT_MAILBOX,
  DMARC_MAILBOX,
  TLS_REPORT_MAILBOX,
];

/** Checks that our listener offers STARTTLS with a certificate for its name, and takes mail to the role mailboxes. No message is sent. */
export function listenerCheck(parts: ListenerParts): Check {
  return {
    name: "role mailboxes",
    fix: "Check SMTP_HOST and SMTP_PORT, and read the log.",
    run: () => visit(parts),
  };
}

async function visit({ host, proxies, ...listener }: ListenerParts): Promise<Finding> {
  const ip = reachableAddress(host);
  if (isInNetworks(ip, proxies))
    return ok(`SMTP_PROXIES has ${ip}, so the listener was not tried from here.`);
  const timeouts = shortTimeouts(CONNECT_MS, REPLY_MS);
  const { fault } = await visitListener(listener, ip, timeouts);
  return fault ?? ok(`The listener takes mail to ${MAILBOXES.join("@, ")}@, over TLS.`);
}

/** A conversation with a listener. */
export interface ListenerVisit {
  reached: boolean;
  /** Why the listener would not take mail to the role mailboxes over TLS; null if it would. */
  fault: Finding | null;
}

/** Talks to the listener at an address, without sending a message. */
export async function visitListener(
  { clock, hostname, serviceDomain, port }: Omit<ListenerParts, "host" | "proxies">,
  ip: string,
  timeouts: Timeouts,
): Promise<ListenerVisit> {
  const options = { host: hostname, ip, port, tls: "opportunistic", implicitTls: false, timeouts } as const;
  const opening = await openSession({ clock }, { ...options, ehloName: hostname }, []);
  if (opening.kind === "failed") {
    const { result } = opening;
    const why =
      result.kind === "reply"
        ? `${result.code} ${result.text}`
        : "reason" in result
          ? result.reason
          : result.kind;
    const message = `The listener at ${ip} port ${port} cannot be tried: ${why}.`;
    return { reached: false, fault: warn(message, "Start the service, and check SMTP_HOST and SMTP_PORT.") };
  }
  const { session } = opening;
  try {
    const fault = tlsFault(session, hostname) ?? (await mailboxFault(session, serviceDomain));
    return { reached: true, fault };
  } finally {
    session.transport.close("done");
  }
}

function tlsFault({ tls }: OpenSession, hostname: string): Finding | null {
  if (tls === null)
    return fail(
      "The listener does not offer STARTTLS, which Google, Microsoft and others require.",
      "Check SMTP_TLS_KEY and SMTP_TLS_CERT, and read the log of the listener's start.",
    );
  const { names = [], moreNames = 0 } = tls.certificate ?? {};
  const wanted = [`dns:${hostname}`, `dns:*${hostname.slice(hostname.indexOf("."))}`];
  if (moreNames > 0 || names.some((name) => wanted.includes(name.toLowerCase()))) return null;
  return warn(
    `The certificate that the listener shows is for ${names.join(", ") || "no name"}, not for ${hostname}.`,
    `Set SMTP_TLS_CERT to a certificate for ${hostname}, then send SIGHUP.`,
  );
}

async function mailboxFault({ transport }: OpenSession, serviceDomain: string): Promise<Finding | null> {
  const say = async (line: string) => {
    const { replies, trouble } = await transport.exchange([Buffer.from(`${line}\r\n`)], [REPLY_MS]);
    const [reply] = replies;
    return {
      taken: reply !== undefined && isSuccess(reply),
      said: reply === undefined ? trouble : replyText(reply),
    };
  };
  const refused: string[] = [];
  for (const mailbox of MAILBOXES) {
    // A message without a sender has one recipient.
    await say("RSET");
    await say("MAIL FROM:<>");
    const { taken, said } = await say(`RCPT TO:<${mailbox}@${serviceDomain}>`);
    if (!taken) refused.push(`${mailbox}@${serviceDomain} (${said})`);
  }
  if (refused.length === 0) return null;
  return fail(
    `The listener refuses mail to ${refused.join(", ")}.`,
    "Check SERVICE_DOMAIN. Complaints and reports of providers go to these mailboxes (RFC 2142).",
  );
}
