import type { arc } from "mailauth/lib/arc";
import type { dkimVerify } from "mailauth/lib/dkim/verify";
import { evaluateDmarc } from "mailauth/lib/dmarc";
import type { spf } from "mailauth/lib/spf";
import type { MailauthResolver } from "./auth-resolver.ts";
import { authorReadings, type ShownAuthors } from "./author-readings.ts";
import type { CheckMemory } from "./check-memory.ts";

/** What the checks of a mail have. */
export interface CheckDeps {
  host: string;
  resolver: MailauthResolver;
  memory: CheckMemory;
}

/** What DKIM says of a mail, and who wrote it. */
export type Signed = Awaited<ReturnType<typeof dkimVerify>>;
type DkimResult = Signed["results"][number];
/** What SPF says of the client. */
export type Sender = Awaited<ReturnType<typeof spf>>;
/** What ARC says of the way here. */
export type Chain = Awaited<ReturnType<typeof arc>>;
/** What DMARC says of the author; without a response where there is not one domain of his. */
export type Evaluated = Awaited<ReturnType<typeof evaluateDmarc>>;

/** The checks that a mail's author can pass by. */
interface Checked {
  signed: Signed;
  sender: Sender;
  chain: Chain | null;
}

/**
 * DMARC of a mail, by each reading of its authors.
 * @param shown the domain of the author that a record shows
 */
export async function checkDmarc(
  deps: CheckDeps,
  { authors, shown }: { authors: ShownAuthors; shown: string | null },
  checked: Checked,
): Promise<Evaluated> {
  const { signed } = checked;
  const read = await worstOf(authorReadings(authors, signed.headerFrom ?? []), (addresses) =>
    dmarcOf(deps, addresses, checked),
  );
  return heldAsShown(read, shown, (author) =>
    dmarcOf(deps, [author], { ...checked, signed: { ...signed, fromFields: 1 } }),
  );
}

/** The result of the first reading by which the mail fails, else of the first that names one author's domain. */
async function worstOf(
  readings: readonly string[][],
  evaluate: (authors: string[]) => Promise<Evaluated>,
): Promise<Evaluated> {
  const [first, ...others] = readings;
  let evaluated = await evaluate(first ?? []);
  for (const authors of others) {
    if (failsBy(evaluated)) break;
    const other = await evaluate(authors);
    if (failsBy(other) || evaluated.response === false) evaluated = other;
  }
  return evaluated;
}

/**
 * The result; or that of the domain that the record shows as the author's, where this is another and the mail fails by
 * it: who names no author, or writes him so that others read him differently, does not get round the policy of the one
 * shown. Nothing passes by it.
 */
async function heldAsShown(
  evaluated: Evaluated,
  shown: string | null,
  evaluate: (author: string) => Promise<Evaluated>,
): Promise<Evaluated> {
  const { response } = evaluated;
  if (shown === null || failsBy(evaluated)) return evaluated;
  if (response !== false && response.status.header?.from === shown) return evaluated;
  const alone = await evaluate(shown);
  return failsBy(alone) ? alone : evaluated;
}

function failsBy({ response }: Evaluated): boolean {
  return response !== false && response.status.result === "fail";
}

/**
 * DMARC by RFC 9989. A mail that fails, and would not if what could not be looked up had passed, is `temperror`: a name
 * server's trouble must not get an honest mail refused.
 */
async function dmarcOf(
  { resolver, memory }: CheckDeps,
  authors: string[],
  { signed, sender, chain }: Checked,
): Promise<Evaluated> {
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
