import type { Clock } from "../../core/clock.ts";
import { DAY_MS } from "../../core/time-units.ts";
import { readChain } from "../../smtp/certificate.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Days before its end at which a certificate should have been renewed: those who do that by themselves do so at 30. */
const RENEW_DAYS = 14;

const CHAIN_FIX =
  "have SMTP_TLS_CERT name the whole chain (fullchain.pem), ours first and each followed by its issuer, and send SIGHUP";

export interface CertificateParts {
  clock: Clock;
  /** The name the listener goes by. */
  hostname: string;
  /** Reads the chain (PEM) and sees that its key belongs to it; null where none is configured. */
  read: (() => Promise<string>) | null;
}

/** The certificate of the SMTP listener. */
export function certificateCheck({ clock, hostname, read }: CertificateParts): Check {
  return {
    name: "certificate",
    fix: "see that SMTP_TLS_KEY and SMTP_TLS_CERT name PEM files that belong together, readable by the service",
    async run() {
      if (read === null)
        return warn(
          "the SMTP listener has a certificate that it signs itself: mail arrives encrypted, by senders who do not look at it",
          `set SMTP_TLS_KEY and SMTP_TLS_CERT to a certificate for ${hostname}`,
        );
      return judge(readChain(await read()), hostname, clock.now());
    },
  };
}

function judge(chain: ReturnType<typeof readChain>, hostname: string, now: number): Finding {
  const [certificate] = chain;
  const days = Math.floor((Date.parse(certificate.validTo) - now) / DAY_MS);
  const renew = "renew it and send the service SIGHUP";
  if (Date.parse(certificate.validTo) <= now) return fail(`it has expired, on ${certificate.validTo}`, renew);
  if (Date.parse(certificate.validFrom) > now)
    return fail(`it is good from ${certificate.validFrom} on only`, "see that this machine's clock is right");
  if (certificate.checkHost(hostname) === undefined)
    return warn(`it is not for ${hostname}; ${days} days left`, `get one with ${hostname} among its names`);
  if (certificate.issuer === certificate.subject)
    return warn(`it signs itself; ${days} days left`, "get one from an authority");
  if (days < RENEW_DAYS) return warn(`${days} days left`, renew);
  if (chain.length === 1)
    return warn(`nothing leads from it to its authority (${lastLine(certificate.issuer)})`, CHAIN_FIX);
  const stray = chain.findIndex((one, i) => i > 0 && chain[i - 1]?.checkIssued(one) === false);
  if (stray > 0)
    return warn(
      `the certificate that follows as number ${stray + 1} has not issued the one before it`,
      CHAIN_FIX,
    );
  return ok(`${days} days left, for ${hostname}`);
}

/** The nearest part of a name that is told in lines, which is the authority's own. */
function lastLine(name: string): string {
  return name.split("\n").at(-1) ?? name;
}
