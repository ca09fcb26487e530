import { bounceDomain, mxHost } from "../../../core/own-names.ts";
import type { Clock } from "../../../core/time/clock.ts";
import { type AuthVerdict, authenticate } from "../../../mail/auth/authenticate.ts";
import { type DkimSigner, signDkim } from "../../../mail/auth/dkim.ts";
import { compose } from "../../../mail/composing/compose.ts";
import { nodeStyleResolver } from "../../../net/dns/node-style-resolver.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import { CHECK_LIMIT_MS, fail, type Finding, warn } from "../check.ts";

export interface AlignmentParts {
  clock: Clock;
  resolver: Resolver;
  serviceDomain: string;
  publicIps: readonly string[];
  /** Returns the keys that a domain signs with; none if they cannot be opened. */
  signersOf: (domain: Domain) => Promise<readonly DkimSigner[]>;
}

/**
 * Composes and signs a message of a domain, and authenticates it as if it had arrived from our first address. Returns what is
 * wrong; null if DMARC would pass. That is so without SPF if the return path is ours. A domain without keys is not tried.
 */
export async function alignmentFault(
  { clock, resolver, serviceDomain, publicIps, signersOf }: AlignmentParts,
  domain: Domain,
): Promise<Finding | null> {
  const { name, id } = domain;
  const keys = await signersOf(domain);
  if (keys.length === 0) return null;
  const now = clock.now();
  const helo = mxHost(serviceDomain);
  const from = { email: `postmaster@${name}` };
  const mail = { from, to: [from], subject: "Test", text: "Test\n", messageId: `<test@${name}>`, date: now };
  const raw = await signDkim({ raw: compose(mail).raw, domain: name, keys, signedAt: now });
  const [ip = "127.0.0.1"] = publicIps;
  const ended = new AbortController();
  const cancel = clock.after(CHECK_LIMIT_MS, () => ended.abort());
  const { verdict } = await authenticate(
    { resolve: nodeStyleResolver(resolver), host: helo },
    { ip, helo, mailFrom: `b@${bounceDomain(serviceDomain)}` },
    raw,
    ended.signal,
  );
  cancel();
  if (isAligned(verdict, name)) return null;
  const isUnknown = verdict.dkim.some(({ result }) => result === "temperror");
  return isUnknown
    ? warn(
        `Whether a message of this domain passes is unknown, because the DNS does not answer: ${words(verdict)}.`,
        "Check the name servers of the domain.",
      )
    : fail(
        `A message of this domain does not pass as receivers check it: ${words(verdict)}.`,
        `Publish the records that GET /v1/domains/${id} lists.`,
      );
}

function isAligned({ dkim }: AuthVerdict, name: string): boolean {
  return dkim.length > 0 && dkim.every(({ result, domain }) => result === "pass" && domain === name);
}

function words({ dkim, spf, dmarc }: AuthVerdict): string {
  const signatures = dkim.map(({ result, selector }) => `dkim=${result} (${selector ?? "no selector"})`);
  return [...signatures, `spf=${spf.result}`, `dmarc=${dmarc.result}`].join(", ");
}
