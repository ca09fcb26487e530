import type { DMARCResult } from "mailauth";
import { arc } from "mailauth/lib/arc";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { evaluateDmarc } from "mailauth/lib/dmarc";
import { spf } from "mailauth/lib/spf";
import { headerField, headerText } from "./header-fields.ts";
import { findHeaderEnd, rawFields } from "./raw-headers.ts";

/** DKIM signatures of one mail that are checked: each costs an RSA operation and a lookup (RFC 6376 §8.4). */
export const MAX_SIGNATURES = 20;
/** DNS lookups for one mail, all checks together; SPF bounds its own to 10 and their addresses (RFC 7208 §4.6.4). */
export const MAX_AUTH_LOOKUPS = 200;
/** RFC 8301 §3.2: keys below 1024 bits prove nothing. */
const MIN_KEY_BITS = 1024;
/** Characters of a word in Authentication-Results; a longer one comes from the mail and is left out. */
const MAX_RESULT_WORD_CHARS = 400;

/**
 * Asks DNS as node's `dns.promises.resolve` does: TXT as arrays of strings, rejects with the codes ENOTFOUND, ENODATA,
 * ESERVFAIL, ETIMEOUT.
 */
export type AuthResolver = (name: string, type: string) => Promise<unknown[]>;

/** What the SMTP session knows of the client. */
export interface AuthEnvelope {
  /** Client address. */
  ip: string;
  helo: string;
  /** Reverse-path; "" for the null one. */
  mailFrom: string;
}

/** The `auth` of an inbound record. Results as in RFC 8601 §2.7. */
export interface AuthVerdict {
  spf: { result: string; domain: string | null };
  dkim: { result: string; domain: string | null; selector: string | null }[];
  /** `policy`: what the domain asks for where its mail fails; null where it publishes none. */
  dmarc: { result: string; policy: "none" | "quarantine" | "reject" | null; domain: string | null };
  arc: { result: string };
}

export interface Authentication {
  verdict: AuthVerdict;
  /** A whole Authentication-Results field (RFC 8601), folded, with its last line end. */
  header: string;
}

export interface AuthDeps {
  resolve: AuthResolver;
  /** Our host name, the authserv-id of RFC 8601 §2.5. */
  host: string;
}

/**
 * Checks SPF, DKIM, ARC and DMARC of a mail. Never throws: what could not be found out is `temperror`.
 * @param signal ends all lookups when it aborts; checks that still wait become `temperror`
 */
export async function authenticate(
  deps: AuthDeps,
  envelope: AuthEnvelope,
  raw: Buffer,
  signal: AbortSignal,
): Promise<Authentication> {
  try {
    const resolver = boundedResolver(deps.resolve, signal);
    return await check({ ...deps, resolver }, envelope, boundedSignatures(raw));
  } catch {
    return { verdict: UNKNOWN, header: resultsField(deps.host, ["auth=temperror"]) };
  }
}

const UNKNOWN: AuthVerdict = {
  spf: { result: "temperror", domain: null },
  dkim: [],
  dmarc: { result: "temperror", policy: null, domain: null },
  arc: { result: "temperror" },
};

/** mailauth's types want strings only; it takes MX records as node gives them. */
type MailauthResolver = (name: string, type: string) => Promise<string[]>;

async function check(
  { host, resolver }: { host: string; resolver: MailauthResolver },
  { ip, helo, mailFrom }: AuthEnvelope,
  raw: Buffer,
): Promise<Authentication> {
  const [signed, sender] = await Promise.all([
    dkimVerify(raw, { resolver, minBitLength: MIN_KEY_BITS, sender: mailFrom }),
    spf({
      resolver,
      ip,
      helo: helo === "" ? `[${ip}]` : helo,
      mta: host,
      ...(mailFrom === "" ? {} : { sender: mailFrom }),
    }),
  ]);
  const chain = signed.arc
    ? await arc(signed.arc as Parameters<typeof arc>[0], { resolver, minBitLength: MIN_KEY_BITS })
    : null;
  const evaluated = await evaluateDmarc({
    headerFrom: signed.headerFrom ?? [],
    fromFields: signed.fromFields,
    spfDomains: sender.status.result === "pass" ? [sender.domain] : [],
    dkimDomains: signed.results.filter(({ status }) => status.result === "pass").flatMap(passingDomain),
    ...(chain === null ? {} : { arcResult: chain }),
    resolver,
  });
  const dmarc = evaluated.response;
  const rows = [
    ...signed.results.map(({ info }) => info),
    sender.info,
    chain?.info,
    dmarc ? dmarc.info : undefined,
  ];
  return {
    verdict: {
      spf: { result: sender.status.result, domain: sender.domain },
      dkim: signed.results
        .filter(({ signingDomain }) => signingDomain)
        .map(({ status, signingDomain, selector }) => ({
          result: status.result,
          domain: signingDomain ?? null,
          selector: selector ?? null,
        })),
      dmarc: dmarc
        ? dmarcVerdict(dmarc)
        : { ...NO_DMARC, result: evaluated.reason === "no-author-domain" ? "none" : "permerror" },
      arc: { result: chain?.status.result ?? "none" },
    },
    header: resultsField(
      host,
      rows.filter((row) => row !== undefined),
    ),
  };
}

type DkimResult = Awaited<ReturnType<typeof dkimVerify>>["results"][number];

function passingDomain({ id, signingDomain, status }: DkimResult) {
  if (!signingDomain) return [];
  const { aligned, underSized } = status;
  return [{ domain: signingDomain, aligned, underSized, ...(id === undefined ? {} : { id }) }];
}

const NO_DMARC = { policy: null, domain: null };

function dmarcVerdict({ status, policy }: DMARCResult): AuthVerdict["dmarc"] {
  return {
    result: status.result,
    policy: policy === "none" || policy === "quarantine" || policy === "reject" ? policy : null,
    domain: status.header?.from ?? null,
  };
}

function dnsError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** The resolver given, within the limit of lookups and until the signal aborts: a slow name server holds nothing up. */
function boundedResolver(resolve: AuthResolver, signal: AbortSignal): MailauthResolver {
  let lookups = 0;
  const ended = new Promise<never>((_, reject) => {
    const end = (): void => reject(dnsError("ETIMEOUT", "out of time"));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
  ended.catch(() => undefined);
  return async (name, type) => {
    lookups++;
    if (lookups > MAX_AUTH_LOOKUPS) throw dnsError("ESERVFAIL", "too many lookups for one mail");
    return (await Promise.race([ended, resolve(name, type)])) as string[];
  };
}

/** The mail with no more DKIM signatures than are checked. */
function boundedSignatures(raw: Buffer): Buffer {
  let signatures = 0;
  const fields = rawFields(raw);
  const kept = fields.filter(({ name }) => name !== "dkim-signature" || ++signatures <= MAX_SIGNATURES);
  if (signatures <= MAX_SIGNATURES) return raw;
  const header = kept.map(({ line }) => `${line}\r\n`).join("");
  return Buffer.concat([Buffer.from(`${header}\r\n`, "latin1"), raw.subarray(findHeaderEnd(raw).body)]);
}

function resultsField(host: string, rows: readonly string[]): string {
  const words = headerText([host, ...rows].join("; ")).split(" ");
  const value = words.map((word) => (word.length > MAX_RESULT_WORD_CHARS ? "(too-long)" : word)).join(" ");
  return headerField("Authentication-Results", value);
}
