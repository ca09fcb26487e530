import type { DmarcVerdict } from "./dmarc-verdict.ts";

/** The answer to a message by its author's policy: 250, 550, or 451 so that its sender tries again. */
export type PolicyAnswer = "take" | "refuse" | "defer";

type Answers = Readonly<Record<"none" | "quarantine" | "reject" | "unknown", PolicyAnswer>>;

const TAKEN: Answers = { none: "take", quarantine: "take", reject: "take", unknown: "take" };

/**
 * The answers, by result and policy. A policy of `reject` is never overridden by a check that did not finish:
 *
 * | check that does not finish                          | counts as                      | p=reject | others |
 * | --------------------------------------------------- | ------------------------------ | -------- | ------ |
 * | the author's policy: DNS trouble or its deadline    | dmarc temperror, no policy     | defer    | defer  |
 * | whether a subdomain exists that `np=` rejects       | dmarc temperror, policy `np`   | defer    | take   |
 * | the policy of another reading of the author         | dmarc temperror of that domain | defer    | defer  |
 * | SPF: DNS trouble or its deadline                    | SPF temperror: it might pass   | defer    | take   |
 * | an aligned key: DNS trouble or its deadline         | DKIM temperror: it might pass  | defer    | take   |
 * | a key that is not aligned: DNS trouble              | no pass                        | refuse   | take   |
 * | an ARC seal: DNS trouble                            | nothing, ARC overrides nothing | refuse   | take   |
 * | lookups beyond the limit of a mail                  | DNS trouble                    | defer    | take   |
 * | signatures beyond a limit (number, size, hashes)    | no pass                        | refuse   | take   |
 * | a signature over a header beyond the limits         | no pass                        | refuse   | take   |
 * | a signature whose check throws (memory, a bug)      | DKIM temperror: it might pass  | defer    | take   |
 * | SPF or a policy whose check throws                  | dmarc temperror, no policy     | defer    | defer  |
 * | a signed mail that stalls or kills its thread twice | DKIM temperror: it might pass  | defer    | take   |
 * | an unsigned mail that does so                       | SPF and the policy alone       | refuse   | take   |
 * | a mail whose header alone does so, too              | an error, 451                  | defer    | defer  |
 * | a thread that does not start                        | an error, 451                  | defer    | defer  |
 * | reading, because too many messages wait             | busy, 451                      | defer    | defer  |
 *
 * `test/flow/unfinished-checks.test.ts` has a test for each row. RFC 9989 §5.4 leaves DNS trouble to the receiver.
 */
const ANSWERS: Readonly<Record<string, Answers>> = {
  pass: TAKEN,
  none: TAKEN,
  // No single author domain: the policy of the domain that a record shows has been asked as well.
  permerror: TAKEN,
  fail: { ...TAKEN, reject: "refuse" },
  temperror: { ...TAKEN, reject: "defer", unknown: "defer" },
};

/**
 * Returns the answer to a message. An ARC chain changes nothing: that takes trust in a sealer (RFC 8617 §7.2.1),
 * and we trust none. A result that is not in the table defers.
 */
export function policyAnswer({ result, policy }: DmarcVerdict): PolicyAnswer {
  return ANSWERS[result]?.[policy ?? "unknown"] ?? "defer";
}
