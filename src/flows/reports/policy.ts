import type { DmarcPolicy } from "../../core/domains/dmarc-policies.ts";
import { AppError, existing } from "../../core/errors.ts";
import { DAY_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { moveDmarcPolicy, setDmarcAuto } from "../../store/domains/dmarc.ts";
import { type Domain, getDomain } from "../../store/domains/domains.ts";
import { mailBySource } from "../../store/domains/reports.ts";
import type { Store } from "../../store/engine/client.ts";
import { utcDay } from "../../store/projects/usage.ts";
import { type DomainLookups, findPolicy } from "../records/lookups.ts";
import { advise, nextPolicy, type PolicyAdvice, WINDOW_DAYS } from "./advice.ts";

export interface PolicyDeps extends Store {
  publicIps: readonly string[];
}

/** Returns the advice for a domain. Asks the DNS for the policy of a domain whose zone is not ours. */
export async function policyAdvice(
  deps: PolicyDeps & { lookups: DomainLookups },
  domain: Domain,
): Promise<PolicyAdvice> {
  return adviceOn(
    deps,
    domain,
    domain.served ? domain.dmarcPolicy : await findPolicy(deps.lookups, domain.name),
  );
}

async function adviceOn(
  { db, clock, publicIps }: PolicyDeps,
  { senderId, id: domainId }: Domain,
  now: DmarcPolicy | null,
): Promise<PolicyAdvice> {
  const at = clock.now();
  const from = utcDay(at - WINDOW_DAYS * DAY_MS);
  return advise(await mailBySource(db, senderId, { domainId, from }), { now, ownIps: publicIps, at });
}

/**
 * Switches whether reports move the DMARC policy of a domain, and moves it if they already show enough.
 * @throws AppError 404; 409 if the domain is not delegated
 */
export async function switchDmarc(
  deps: PolicyDeps,
  senderId: string,
  id: string,
  auto: boolean,
): Promise<void> {
  const domain = existing("domain", await getDomain(deps.db, senderId, id));
  // What is not delegated is manual already.
  if (!domain.delegated && !auto) return;
  if (!(await setDmarcAuto(deps.db, senderId, id, auto)))
    throw new AppError(
      "conflict",
      "Only the zone of a delegated domain is ours to change. Delegate it first.",
      { code: "invalid_state", param: "dmarc" },
    );
  if (auto) await movePolicy(deps, senderId, id);
}

/**
 * Moves the DMARC policy of a domain as its reports advise, if its owner left that to the service. Runs after each report that
 * counts, because nothing else changes the advice for the worse.
 */
export async function movePolicy(deps: PolicyDeps, senderId: string, id: string): Promise<void> {
  const domain = await getDomain(deps.db, senderId, id);
  if (domain === null || !domain.dmarcAuto || !domain.served) return;
  const { dmarcPolicy: from, dmarcMoves } = domain;
  const advice = await adviceOn(deps, domain, from);
  const at = deps.clock.now();
  const to = nextPolicy(advice, dmarcMoves[0]?.at ?? null, at);
  if (to === null) return;
  const [reason = ""] = advice.reasons;
  if (!(await moveDmarcPolicy(deps.db, domain, { at, from, to, reason }))) return;
  log("dmarc").warn("the DMARC policy of a domain moved", { id, domain: domain.name, from, to, reason });
}
