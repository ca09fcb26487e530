import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { isUnreachable } from "../../net/acme/problem.ts";
import { readChain } from "../../smtp/listener/certificate.ts";
import type { CertificateRecord } from "../../store/domains/certificates.ts";
import type { ServedCertificate } from "../certificates/served.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Days left at which a certificate should be renewed by now. ACME clients renew it at 30. */
const RENEW_DAYS = 14;
/** Days left at which a renewal that keeps failing stops mail soon. */
const URGENT_DAYS = 7;
/** Time after which a due renewal should have been tried. */
const OVERDUE_MS = DAY_MS;

const CHAIN_FIX =
  "Put the whole chain (fullchain.pem) into SMTP_TLS_CERT, our certificate first and each followed by its issuer. Then send SIGHUP.";
const NO_WORKER = "Check that a process with ACME_EMAIL and the role worker runs, and read its log.";

export interface CertificateParts {
  clock: Clock;
  /** Name in the greeting of the listener. */
  hostname: string;
  /** True if certificates are ordered. */
  ordered: boolean;
  /** Returns the certificate that our servers use. */
  served: () => Promise<ServedCertificate>;
}

/** Checks the certificate of the SMTP listener and TLS_PORT. */
export function certificateCheck({ clock, hostname, ordered, served }: CertificateParts): Check {
  return {
    name: "certificate",
    fix: "Set SMTP_TLS_KEY and SMTP_TLS_CERT to PEM files that match and that the service may read.",
    needsDatabase: ordered,
    async run() {
      const { source, chain, record } = await served();
      const now = clock.now();
      if (ordered) return judgeOrdered(record, hostname, now);
      if (chain === null || source === "self-signed")
        return warn(
          "The SMTP listener uses a self-signed certificate, so senders that verify certificates do not deliver.",
          `Set ACME_EMAIL, or SMTP_TLS_KEY and SMTP_TLS_CERT to a certificate for ${hostname}.`,
        );
      return judge(readChain(chain), hostname, now, RENEW_DAYS);
    },
  };
}

/** Advice if the authority cannot be reached, because then nothing else has been tried. */
export const UNREACHABLE_FIX =
  "Check ACME_DIRECTORY, and that this machine may open connections with TLS to the authority.";

function orderFix(error: string | undefined): string {
  return error !== undefined && isUnreachable(error)
    ? UNREACHABLE_FIX
    : "Check that our zone is delegated, and that port 53 reaches DNS_PORT.";
}

/** Reports a failed order at once, because a certificate is ordered weeks before the current one expires. */
function judgeOrdered(record: CertificateRecord | null, hostname: string, now: number): Finding {
  if (record === null) return warn("No certificate has been ordered yet.", NO_WORKER);
  const { issued, lastError, renewAt } = record;
  const names = record.names.join(", ");
  const again = `It is tried again at ${new Date(record.dueAt).toISOString()}. ${orderFix(lastError?.text)} Then \`postrider certificates --retry\` tries at once.`;
  if (issued === null)
    return lastError === null
      ? warn(`The certificate for ${names} is being ordered.`, "Wait a minute.")
      : fail(`There is no certificate for ${names}: ${lastError.text}.`, again);
  const left = Math.floor((issued.notAfter - now) / DAY_MS);
  if (lastError !== null) {
    const text = `The certificate for ${names} cannot be renewed and has ${left} days left: ${lastError.text}.`;
    return left < URGENT_DAYS ? fail(text, again) : warn(text, again);
  }
  if (renewAt !== null && now - renewAt > OVERDUE_MS)
    return fail(
      `The certificate for ${names} should have been renewed, and has ${left} days left.`,
      NO_WORKER,
    );
  return judge(readChain(issued.chain), hostname, now, 0);
}

function judge(
  chain: ReturnType<typeof readChain>,
  hostname: string,
  now: number,
  renewDays: number,
): Finding {
  const [certificate] = chain;
  const days = Math.floor((Date.parse(certificate.validTo) - now) / DAY_MS);
  const renew = "Renew it and send SIGHUP to the service.";
  if (Date.parse(certificate.validTo) <= now)
    return fail(`The certificate expired on ${certificate.validTo}.`, renew);
  if (Date.parse(certificate.validFrom) > now)
    return fail(
      `The certificate is not valid before ${certificate.validFrom}.`,
      "Check the clock of this machine.",
    );
  if (certificate.checkHost(hostname) === undefined)
    return warn(
      `The certificate is not for ${hostname} (${days} days left).`,
      `Get one that has ${hostname} among its names.`,
    );
  if (certificate.issuer === certificate.subject)
    return warn(
      `The certificate is self-signed (${days} days left).`,
      "Get one from a certificate authority.",
    );
  if (days < renewDays) return warn(`The certificate expires in ${days} days.`, renew);
  if (chain.length === 1)
    return warn(
      `The chain lacks the certificate of the issuer (${lastLine(certificate.issuer)}).`,
      CHAIN_FIX,
    );
  const stray = chain.findIndex((one, i) => i > 0 && chain[i - 1]?.checkIssued(one) === false);
  if (stray > 0)
    return warn(`Certificate ${stray + 1} of the chain has not issued the one before it.`, CHAIN_FIX);
  return ok(`The certificate for ${hostname} has ${days} days left.`);
}

/** Returns the last line of a distinguished name: the common name of the authority. */
function lastLine(name: string): string {
  return name.split("\n").at(-1) ?? name;
}
