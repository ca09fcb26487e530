import type { DMARCResult } from "mailauth";
import { arc, getARChain } from "mailauth/lib/arc";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { spf } from "mailauth/lib/spf";
import { organizationalDomain } from "../core/public-suffix.ts";
import { type AuthResolver, boundedResolver, type MailauthResolver } from "./auth-resolver.ts";
import { type ShownAuthors, shownAuthorDomain, shownAuthors } from "./author-readings.ts";
import {
  type Chain,
  type CheckDeps,
  checkDmarc,
  type Evaluated,
  type Sender,
  type Signed,
} from "./check-dmarc.ts";
import { checkable, isSigned } from "./checkable.ts";
import { CheckMemory, MAX_KEY_CHARS } from "./check-memory.ts";
import { headerField, headerText } from "./composing/header-fields.ts";
import { rawFields } from "./reading/raw-headers.ts";

/** RFC 8301 §3.2: keys below 1024 bits prove nothing. */
const MIN_KEY_BITS = 1024;
/** Characters of a word in Authentication-Results; a longer one comes from the mail and is left out. */
const MAX_RESULT_WORD_CHARS = 400;

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

/** What the checks of a mail have found. */
export interface Authentication {
  verdict: AuthVerdict;
  /** A whole Authentication-Results field (RFC 8601), folded, with its last line end. */
  header: string;
}

export interface AuthDeps {
  resolve: AuthResolver;
  /** Our host name, the authserv-id of RFC 8601 §2.5. */
  host: string;
  /** What was found for other mails; left out: nothing. */
  memory?: CheckMemory;
}

/**
 * Checks SPF, DKIM, ARC and DMARC of a mail. Never throws: what could not be found out is `temperror`.
 * @param signal ends all lookups when it aborts, but for those of the author's domain; checks that still wait become
 *   `temperror`
 * @param last ends those as well
 */
export async function authenticate(
  deps: AuthDeps,
  envelope: AuthEnvelope,
  raw: Buffer,
  signal: AbortSignal,
  last: AbortSignal = signal,
): Promise<Authentication> {
  try {
    const fields = rawFields(raw);
    const authors = shownAuthors(fields);
    const shown = shownAuthorDomain(authors, envelope.mailFrom);
    const author = shown === null ? null : organizationalDomain(shown);
    const resolver = boundedResolver(deps.resolve, { signal, last, author });
    const mail = { checked: checkable(raw, fields), authors, shown };
    const { host, memory = new CheckMemory() } = deps;
    if (isSigned(fields)) return await check({ host, resolver, memory }, envelope, mail);
    // Without signatures, whose end may come with time, all that is found follows from these.
    const { ip, helo, mailFrom } = envelope;
    const key = [
      "mail",
      ip,
      helo,
      mailFrom,
      authors.text,
      mail.checked.toString("latin1", 0, MAX_KEY_CHARS + 1),
    ];
    return await memory.recall(JSON.stringify(key), resolver, (noted) =>
      check({ host, resolver: noted, memory }, envelope, mail),
    );
  } catch {
    return undecided(deps.host);
  }
}

/** What is said of a mail whose checks came to no end. */
export function undecided(host: string): Authentication {
  return { verdict: UNKNOWN, header: resultsField(host, ["auth=temperror"]) };
}

/** What is said of a mail that came from nowhere, so that there is nothing to check (RFC 8601 §2.2 "none"). */
export function unchecked(host: string): Authentication {
  return { verdict: UNCHECKED, header: resultsField(host, ["none"]) };
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
  /** What signatures are looked for in, and checked over. */
  checked: Buffer;
  authors: ShownAuthors;
  /** The domain of the author that a record shows. */
  shown: string | null;
}

async function check(
  deps: CheckDeps,
  envelope: AuthEnvelope,
  { checked, authors, shown }: CheckedMail,
): Promise<Authentication> {
  const { host, resolver } = deps;
  const [signed, sender] = await Promise.all([
    dkimVerify(checked, { resolver, minBitLength: MIN_KEY_BITS, sender: envelope.mailFrom }),
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
  return { verdict: verdictOf(signed, sender, chain, evaluated), header };
}

/** SPF of the client. */
function senderOf(
  { host, resolver, memory }: CheckDeps,
  { ip, helo, mailFrom }: AuthEnvelope,
): Promise<Sender> {
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

function verdictOf(signed: Signed, sender: Sender, chain: Chain | null, evaluated: Evaluated): AuthVerdict {
  return {
    spf: { result: sender.status.result, domain: sender.domain },
    dkim: signed.results
      .filter(({ signingDomain }) => signingDomain)
      .map(({ status, signingDomain, selector }) => ({
        result: status.result,
        domain: signingDomain ?? null,
        selector: selector ?? null,
      })),
    dmarc: evaluated.response
      ? dmarcVerdict(evaluated.response)
      : { ...NO_DMARC, result: evaluated.reason === "no-author-domain" ? "none" : "permerror" },
    arc: { result: chain?.status.result ?? "none" },
  };
}

/**
 * The ARC chain's verdict. Seals are held to the letter of RFC 8617 §4.1: each is made by software that knows it, unlike
 * DKIM signatures, of which old ones abound.
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

const NO_DMARC = { policy: null, domain: null };

function dmarcVerdict({ status, policy, rr }: DMARCResult): AuthVerdict["dmarc"] {
  return {
    result: status.result,
    policy:
      policy === "none" || policy === "quarantine" || policy === "reject" ? wholePolicy(policy, rr) : null,
    domain: status.header?.from ?? null,
  };
}

/**
 * `pct=` was for rolling a policy out (RFC 7489 §6.6.4) and is gone from RFC 9989, where `t=y` stands for `pct=0`. Who
 * still publishes less than 100 is not ready to lose mail: their `reject` counts as the next lower policy.
 */
function wholePolicy(
  policy: "none" | "quarantine" | "reject",
  record = "",
): "none" | "quarantine" | "reject" {
  const percent = /(?:^|;)\s*pct\s*=\s*(\d{1,3})\s*(?:;|$)/i.exec(record)?.[1];
  return policy === "reject" && percent !== undefined && Number(percent) < 100 ? "quarantine" : policy;
}

function resultsField(host: string, rows: readonly string[]): string {
  const words = headerText([host, ...rows].join("; ")).split(" ");
  const value = words.map((word) => (word.length > MAX_RESULT_WORD_CHARS ? "(too-long)" : word)).join(" ");
  return headerField("Authentication-Results", value);
}
