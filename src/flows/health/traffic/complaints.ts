import type { Clock } from "../../../core/time/clock.ts";
import { DAY_MS } from "../../../core/time/units.ts";
import type { Db } from "../../../store/engine/client.ts";
import { type ProviderCounts, providerCountsOfAll } from "../../../store/projects/provider-stats.ts";
import { providerOfLane } from "../../lanes/providers.ts";
import { type Check, fail, type Finding, ok, warn } from "../check.ts";

export interface ComplaintParts {
  db: () => Db;
  clock: Clock;
}

const DATABASE_FIX = "Check that the database is reachable.";
/** Days over which rates are computed, and in which complaints of a feedback loop are looked for. */
const [RATE_DAYS, LOOP_DAYS] = [7, 30];
/** Delivered messages from which on a rate means something, and from which on some reader complains. */
const [MIN_DELIVERED, COMPLAINED_FROM] = [1000, 5000];
/** Complaints that are no accident. */
const MIN_COMPLAINTS = 2;
/** Rates that providers name as the aim and as too high, complaints per thousand delivered. */
const [AIM, TOO_HIGH] = [1, 3];

/** Returns the checks of complaints by provider. They name no project, because every account may read them. */
export function complaintChecks(parts: ComplaintParts): Check[] {
  const line = (
    name: string,
    days: number,
    judge: (counts: readonly ProviderCounts[]) => Finding,
  ): Check => ({
    name,
    needsDatabase: true,
    fix: DATABASE_FIX,
    run: async () => judge(await countsOf(parts, days)),
  });
  return [line("complaints", RATE_DAYS, rates), line("feedback loops", LOOP_DAYS, loops)];
}

function countsOf({ db, clock }: ComplaintParts, days: number): Promise<ProviderCounts[]> {
  const today = Math.floor(clock.now() / DAY_MS);
  return providerCountsOfAll(db(), today - days + 1, today);
}

function rates(counts: readonly ProviderCounts[]): Finding {
  const above = (perMille: number): string[] =>
    counts
      .filter(
        ({ delivered, complained }) =>
          delivered >= MIN_DELIVERED &&
          complained >= MIN_COMPLAINTS &&
          complained * 1000 >= delivered * perMille,
      )
      .map(({ provider, delivered, complained }) => `${titleOf(provider)} (${complained} of ${delivered})`);
  const [high, near] = [above(TOO_HIGH), above(AIM)];
  const fix = "Read GET /v1/stats by project and provider: stop mail to people who never open.";
  if (high.length > 0)
    return fail(`Readers complain about 0.3 % of a week's mail or more: ${listed(high)}.`, fix);
  if (near.length > 0)
    return warn(`Readers complain about 0.1 % of a week's mail or more: ${listed(near)}.`, fix);
  return ok("Readers of each provider complain about less than 0.1 % of a week's mail.");
}

/** Providers that send complaints only to those who enrol, and to whom mail was delivered. */
function loops(counts: readonly ProviderCounts[]): Finding {
  const offered = counts.flatMap(({ provider, delivered, complained }) => {
    const page = providerOfLane(provider)?.feedbackLoop ?? null;
    return page === null || delivered === 0
      ? []
      : [
          {
            text: `${titleOf(provider)} (${page})`,
            silent: delivered >= COMPLAINED_FROM && complained === 0,
          },
        ];
  });
  const silent = offered.filter((one) => one.silent).map(({ text }) => text);
  if (silent.length > 0)
    return warn(
      `No complaint has arrived in ${LOOP_DAYS} days, of ${COMPLAINED_FROM} messages or more, from ${listed(silent)}. Is the service not enrolled?`,
      "Enrol at the page, with fbl@ of the service domain as the address for complaints.",
    );
  return ok(
    offered.length === 0
      ? "No mail went to a provider with a feedback loop."
      : `Complaints come only to those who enrol: ${listed(offered.map(({ text }) => text))}.`,
  );
}

const titleOf = (provider: string): string => providerOfLane(provider)?.title ?? provider;

function listed(names: readonly string[]): string {
  return names.join(", ");
}
