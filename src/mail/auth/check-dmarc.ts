import type { arc } from "mailauth/lib/arc";
import { evaluateDmarc } from "mailauth/lib/dmarc";
import type { spf } from "mailauth/lib/spf";
import type { MailauthResolver } from "./resolver.ts";
import { authorReadings, haveDomains, type ShownAuthors } from "./author-readings.ts";
import type { CheckMemory } from "./check-memory.ts";
import { dmarcVerdict, type Evaluated } from "./dmarc-verdict.ts";
import { policyAnswer } from "./policy-answer.ts";
import type { Signed } from "./verify-dkim.ts";

export interface CheckDeps {
  host: string;
  resolver: MailauthResolver;
  memory: CheckMemory;
}

type DkimResult = Signed["results"][number];
/** The result of SPF for the client. */
export type SpfCheck = Awaited<ReturnType<typeof spf>>;
/** The result of ARC for the way here. */
export type Chain = Awaited<ReturnType<typeof arc>>;

/** The checks by which a message's author can pass. */
interface Checked {
  signed: Signed;
  sender: SpfCheck;
  chain: Chain | null;
}

/**
 * Returns DMARC's result for a message, by each reading of its authors. If a reading names no domain, the message
 * never passes.
 * @param shown the domain of the author that a record shows
 */
export async function checkDmarc(
  deps: CheckDeps,
  { authors, shown }: { authors: ShownAuthors; shown: string | null },
  checked: Checked,
): Promise<Evaluated> {
  const { signed } = checked;
  const readings = authorReadings(authors, signed.headerFrom);
  const worst = await worstOf(readings, (addresses) => dmarcOf(deps, addresses, checked));
  const read = badness(worst) >= FAILS || readings.every(haveDomains) ? worst : NO_AUTHOR;
  return heldAsShown(read, shown, (author) =>
    dmarcOf(deps, [author], { ...checked, signed: { ...signed, fromFields: 1 } }),
  );
}

const NO_AUTHOR: Evaluated = { response: false, reason: "no-author-domain" };

/** Returns the result of the reading that is worst for the mail, the first of those. */
async function worstOf(
  readings: readonly string[][],
  evaluate: (authors: string[]) => Promise<Evaluated>,
): Promise<Evaluated> {
  const [first, ...others] = readings;
  let worst = await evaluate(first ?? []);
  for (const authors of others) {
    const other = await evaluate(authors);
    if (badness(other) > badness(worst)) worst = other;
  }
  return worst;
}

/**
 * Returns the result, or a worse one by the domain that the record shows as the author's. A message without an
 * author, or with one that programs read differently, cannot evade the policy of the domain shown. Nothing passes
 * by it.
 */
async function heldAsShown(
  evaluated: Evaluated,
  shown: string | null,
  evaluate: (author: string) => Promise<Evaluated>,
): Promise<Evaluated> {
  const { response } = evaluated;
  if (shown === null || (response !== false && response.status.header?.from === shown)) return evaluated;
  const alone = await evaluate(shown);
  return badness(alone) >= FAILS && badness(alone) > badness(evaluated) ? alone : evaluated;
}

const FAILS = 2;

/** Returns how bad a result is: 4 refused, 3 put off, 2 fails, 1 an author domain that does not fail, 0 none. */
function badness(evaluated: Evaluated): number {
  const { response } = evaluated;
  if (response === false) return 0;
  const answer = policyAnswer(dmarcVerdict(evaluated));
  if (answer !== "take") return answer === "refuse" ? 4 : 3;
  return response.status.result === "fail" ? FAILS : 1;
}

/**
 * Returns DMARC's result by RFC 9989. A fail becomes `temperror` if the mail would pass with a check that did not finish: trouble of a name
 * server must not refuse an honest mail.
 */
async function dmarcOf(
  { resolver, memory }: CheckDeps,
  authors: string[],
  { signed, sender, chain }: Checked,
): Promise<Evaluated> {
  if (!haveDomains(authors)) return NO_AUTHOR;
  const { fromFields } = signed;
  const arcResult = chain?.status.result;
  const senders = { result: sender.status.result, domains: [sender.domain] };
  const signers = signed.results.map((one) => ({ result: one.status.result, domains: signingDomainOf(one) }));
  const key = JSON.stringify(["dmarc", authors, fromFields, senders, signers, arcResult]);
  return memory.recall(key, resolver, (noted) =>
    evaluatedOf((...counted) =>
      evaluateDmarc({
        headerFrom: authors,
        fromFields,
        spfDomains: counted.includes(senders.result) ? senders.domains : [],
        dkimDomains: signers.flatMap(({ result, domains }) => (counted.includes(result) ? domains : [])),
        ...(chain === null ? {} : { arcResult: chain }),
        resolver: noted,
      }),
    ),
  );
}

async function evaluatedOf(evaluate: (...counted: string[]) => Promise<Evaluated>): Promise<Evaluated> {
  const evaluated = await evaluate("pass");
  const { response } = evaluated;
  if (response === false || response.status.result !== "fail") return evaluated;
  const hoped = await evaluate("pass", "temperror");
  if (hoped.response === false || hoped.response.status.result === "fail") return evaluated;
  response.status.result = "temperror";
  response.info = response.info.replace(/^dmarc=fail\b/, "dmarc=temperror");
  return evaluated;
}

function signingDomainOf({ id, signingDomain, status }: DkimResult) {
  if (!signingDomain) return [];
  const { aligned, underSized } = status;
  return [{ domain: signingDomain, aligned, underSized, ...(id === undefined ? {} : { id }) }];
}
