import { arc, getARChain } from "mailauth/lib/arc";
import { evaluateDmarc } from "mailauth/lib/dmarc";
import { spf } from "mailauth/lib/spf";
import { organizationalDomain } from "../../core/public-suffix.ts";
import { type AuthResolver, boundedResolver, type MailauthResolver } from "./resolver.ts";
import { type ShownAuthors, shownAuthorDomain, shownAuthors } from "./author-readings.ts";
import { type Chain, type CheckDeps, checkDmarc, type SpfCheck } from "./check-dmarc.ts";
import { type CheckableMail, checkable, isSigned } from "./checkable.ts";
import { CheckMemory, MAX_KEY_CHARS } from "./check-memory.ts";
import { headerField, headerText } from "../composing/header-fields.ts";
import { type DmarcVerdict, dmarcVerdict, type Evaluated } from "./dmarc-verdict.ts";
import { provenAddress } from "./proven-address.ts";
import { findHeaderEnd, rawFields } from "../reading/raw-headers.ts";
import { type Signed, unverifiedDkim, verifyDkim } from "./verify-dkim.ts";

/** RFC 8301 §3.2: keys below 1024 bits prove nothing. */
const MIN_KEY_BITS = 1024;
/** RFC 8301 §3.1: neither does rsa-sha1, whatever the record of the key says. */
const rejectRsaSha1 = true;
/**
 * Maximum characters of a word in Authentication-Results. A longer one comes from the mail and is left out.
 */
const MAX_RESULT_WORD_CHARS = 400;

/** Facts of the SMTP session about the client. */
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
  dmarc: DmarcVerdict;
  arc: { result: string };
}

/** The results of authenticating a message. */
export interface Authentication {
  verdict: AuthVerdict;
  /** The address in From if DMARC proves it (`proven-address`); else null. */
  author: string | null;
  /** A whole Authentication-Results field (RFC 8601), folded, with its last line end. */
  header: string;
}

export interface AuthDeps {
  resolve: AuthResolver;
  /** Our host name, the authserv-id of RFC 8601 §2.5. */
  host: string;
  /** Findings for other messages; left out: none. */
  memory?: CheckMemory;
}

/** Deadlines of the lookups for a message. */
export interface CheckEnds {
  /** Ends all lookups but those of the author's domain. */
  signal: AbortSignal;
  /** Ends those as well. */
  last: AbortSignal;
}

/**
 * Checks SPF, DKIM, ARC and DMARC of a message. A lookup that does not finish is `temperror`. If a check throws,
 * the policy and SPF alone decide. Never throws.
 */
export async function authenticate(
  deps: AuthDeps,
  envelope: AuthEnvelope,
  raw: Buffer,
  signal: AbortSignal,
  last: AbortSignal = signal,
): Promise<Authentication> {
  try {
    return await checked(deps, envelope, raw, { ends: { signal, last }, dkim: verifyDkim });
  } catch {
    return authenticateSender(deps, envelope, raw, signal, last);
  }
}

/**
 * Checks SPF and DMARC of a message by its header alone. Its signatures count as `temperror`, so that the author's
 * policy never refuses a message for a signature that we did not check. Never throws.
 */
export async function authenticateSender(
  deps: AuthDeps,
  envelope: AuthEnvelope,
  raw: Buffer,
  signal: AbortSignal,
  last: AbortSignal = signal,
): Promise<Authentication> {
  try {
    const header = raw.subarray(0, findHeaderEnd(raw).body);
    return await checked(deps, envelope, header, { ends: { signal, last }, dkim: unverifiedDkim });
  } catch {
    return { verdict: UNKNOWN, author: null, header: resultsField(deps.host, ["auth=temperror"]) };
  }
}

interface CheckOptions {
  ends: CheckEnds;
  /** Verifies the DKIM signatures. */
  dkim: typeof verifyDkim;
}

async function checked(
  deps: AuthDeps,
  envelope: AuthEnvelope,
  raw: Buffer,
  { ends, dkim }: CheckOptions,
): Promise<Authentication> {
  const fields = rawFields(raw);
  const authors = shownAuthors(fields);
  const shown = shownAuthorDomain(authors, envelope.mailFrom);
  const author = shown === null ? null : organizationalDomain(shown);
  const resolver = boundedResolver(deps.resolve, { ...ends, author });
  const mail = { checkable: checkable(raw, fields), authors, shown, dkim };
  const { host, memory = new CheckMemory() } = deps;
  if (isSigned(fields)) return check({ host, resolver, memory }, envelope, mail);
  // Without signatures, which may expire, the findings follow from these alone.
  const { ip, helo, mailFrom } = envelope;
  const header = mail.checkable.header.toString("latin1", 0, MAX_KEY_CHARS + 1);
  const key = ["mail", ip, helo, mailFrom, authors.text, header];
  return memory.recall(JSON.stringify(key), resolver, (noted) =>
    check({ host, resolver: noted, memory }, envelope, mail),
  );
}

/**
 * Returns the findings for a message that came from no client: there is nothing to check (RFC 8601 §2.2 "none").
 */
export function unchecked(host: string): Authentication {
  return { verdict: UNCHECKED, author: null, header: resultsField(host, ["none"]) };
}

const UNCHECKED: AuthVerdict = {
  spf: { result: "none", domain: null },
  dkim: [],
  dmarc: { result: "none", policy: null, domain: null },
  arc: { result: "none" },
};

const UNKNOWN: AuthVerdict = {
  spf: { result: "temperror", domain: null },
  dkim: [],
  dmarc: { result: "temperror", policy: null, domain: null },
  arc: { result: "temperror" },
};

interface CheckedMail {
  /** The part that has the signatures and is covered by them. */
  checkable: CheckableMail;
  authors: ShownAuthors;
  /** The domain of the author that a record shows. */
  shown: string | null;
  dkim: typeof verifyDkim;
}

async function check(
  deps: CheckDeps,
  envelope: AuthEnvelope,
  { checkable: mail, authors, shown, dkim }: CheckedMail,
): Promise<Authentication> {
  const { host, resolver } = deps;
  if (shown !== null) askForPolicy(resolver, shown);
  const [signed, sender] = await Promise.all([
    dkim(mail, { resolver, minBitLength: MIN_KEY_BITS, rejectRsaSha1 }),
    senderOf(deps, envelope),
  ]);
  const chain = await chainOf(resolver, signed);
  const evaluated = await checkDmarc(deps, { authors, shown }, { signed, sender, chain });
  const dmarc = evaluated.response ? evaluated.response.info : undefined;
  const rows = [...signed.results.map(({ info }) => info), sender.info, chain?.info, dmarc];
  const header = resultsField(
    host,
    rows.filter((row) => row !== undefined),
  );
  return {
    verdict: verdictOf(signed, sender, chain, evaluated),
    author: provenAddress(authors, evaluated),
    header,
  };
}

/** Asks for the author's policy at once: it is then known even if a slow name server uses up the time of the other checks. */
function askForPolicy(resolver: MailauthResolver, author: string): void {
  evaluateDmarc({ headerFrom: [author], fromFields: 1, resolver }).catch(() => undefined);
}

/** Returns the result of SPF for the client. */
function senderOf(
  { host, resolver, memory }: CheckDeps,
  { ip, helo, mailFrom }: AuthEnvelope,
): Promise<SpfCheck> {
  return memory.recall(JSON.stringify(["spf", ip, helo, mailFrom]), resolver, (noted) =>
    spf({
      resolver: noted,
      // RFC 7208 to the letter, as its suite tests it.
      strict: true,
      ip,
      helo: helo === "" ? `[${ip}]` : helo,
      mta: host,
      ...(mailFrom === "" ? {} : { sender: mailFrom }),
    }),
  );
}

function verdictOf(signed: Signed, sender: SpfCheck, chain: Chain | null, evaluated: Evaluated): AuthVerdict {
  return {
    spf: { result: sender.status.result, domain: sender.domain },
    dkim: signed.results
      .filter(({ signingDomain }) => signingDomain)
      .map(({ status, signingDomain, selector }) => ({
        result: status.result,
        domain: signingDomain ?? null,
        selector: selector ?? null,
      })),
    dmarc: dmarcVerdict(evaluated),
    arc: { result: chain?.status.result ?? "none" },
  };
}

/**
 * Returns the verdict on the ARC chain. Seals must follow RFC 8617 §4.1 to the letter, because all software that makes them knows
 * it. DKIM signatures need not: many are made by old software.
 */
async function chainOf(resolver: MailauthResolver, signed: Signed): Promise<Chain | null> {
  if (!signed.arc) return null;
  const chain = await arc(signed.arc as Parameters<typeof arc>[0], { resolver, minBitLength: MIN_KEY_BITS });
  if (chain.status.result !== "pass") return chain;
  try {
    getARChain(signed.headers, { strict: true });
    return chain;
  } catch {
    return { ...chain, status: { ...chain.status, result: "fail" }, info: "arc=fail" };
  }
}

function resultsField(host: string, rows: readonly string[]): string {
  const words = headerText([host, ...rows].join("; ")).split(" ");
  const value = words.map((word) => (word.length > MAX_RESULT_WORD_CHARS ? "(too-long)" : word)).join(" ");
  return headerField("Authentication-Results", value);
}
