import type { Clock } from "../../core/time/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { type HostSettings, hostsDomains, MAX_DOMAIN_CERTIFICATES } from "../certificates/domain-hosts.ts";
import { type CertificateState, certificateStates } from "../certificates/states.ts";
import { isUnreachable } from "../../net/acme/problem.ts";
import { UNREACHABLE_FIX } from "./certificate.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

const FIX =
  "`postrider certificates` names them, with the error of each. Check that the NS records lead here, and that no CAA record above a domain forbids the authority. Then `postrider certificates --retry` tries at once.";

export interface DomainCertificateParts {
  db: () => Db;
  clock: Clock;
  settings: HostSettings;
}

/** Returns the check of the certificates of delegated domains; none if they have no hosts. Other accounts read its message. */
export function domainCertificateChecks({ db, clock, settings }: DomainCertificateParts): Check[] {
  if (!hostsDomains(settings)) return [];
  const run = async () => judge(await certificateStates(db(), settings, clock.now()));
  return [{ name: "domain certificates", run, fix: FIX, needsDatabase: true }];
}

function judge(all: readonly CertificateState[]): Finding {
  const states = all.filter(({ accountId }) => accountId !== null);
  const failed = states.filter(({ lastError }) => lastError !== null);
  const issued = states.filter(({ expiresAt }) => expiresAt !== null);
  const counts = `${issued.length} of ${states.length} delegated domains have a certificate`;
  if (failed.length > 0) {
    const isAway = failed.every(({ lastError }) => lastError !== null && isUnreachable(lastError.text));
    const fix = isAway ? `${UNREACHABLE_FIX} Then \`postrider certificates --retry\` tries at once.` : FIX;
    return warn(`${counts}. The last order failed for ${failed.length} of them.`, fix);
  }
  if (states.length >= MAX_DOMAIN_CERTIFICATES)
    return warn(
      `${counts}. More than ${MAX_DOMAIN_CERTIFICATES} get none, so links in their messages lead to PUBLIC_URL.`,
      "Run a second installation for further domains.",
    );
  return ok(`${counts}.`);
}
