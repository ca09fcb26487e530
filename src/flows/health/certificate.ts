import type { Clock } from "../../core/time/clock.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { readChain } from "../../smtp/certificate.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Days left at which a certificate should be renewed by now. ACME clients renew it at 30. */
const RENEW_DAYS = 14;

const CHAIN_FIX =
  "Put the whole chain (fullchain.pem) into SMTP_TLS_CERT, our certificate first and each followed by its issuer. Then send SIGHUP.";

export interface CertificateParts {
  clock: Clock;
  /** Name in the greeting of the listener. */
  hostname: string;
  /** Reads the chain (PEM) and checks that its key matches; null if none is configured. */
  read: (() => Promise<string>) | null;
}

/** Checks the certificate of the SMTP listener. */
export function certificateCheck({ clock, hostname, read }: CertificateParts): Check {
  return {
    name: "certificate",
    fix: "Set SMTP_TLS_KEY and SMTP_TLS_CERT to PEM files that match and that the service may read.",
    async run() {
      if (read === null)
        return warn(
          "The SMTP listener uses a self-signed certificate, so senders that verify certificates do not deliver.",
          `Set SMTP_TLS_KEY and SMTP_TLS_CERT to a certificate for ${hostname}.`,
        );
      return judge(readChain(await read()), hostname, clock.now());
    },
  };
}

function judge(chain: ReturnType<typeof readChain>, hostname: string, now: number): Finding {
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
  if (days < RENEW_DAYS) return warn(`The certificate expires in ${days} days.`, renew);
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
