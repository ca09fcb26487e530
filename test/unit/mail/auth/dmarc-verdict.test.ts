import { expect, test } from "bun:test";
import { dmarcVerdict, type Evaluated } from "../../../../src/mail/auth/dmarc-verdict.ts";

type Response = NonNullable<Evaluated["response"]>;
interface Given {
  policy?: string;
  rr?: string;
  sp?: string;
  np?: string;
  testMode?: boolean;
  /** Result of the check, "fail" if not given. */
  result?: string;
  applied?: string;
  /** Domain that published the policy; the author's is a.example. */
  at?: string;
}

function verdict({ policy, rr, sp, np, testMode = false, result = "fail", applied, at }: Given) {
  const status = { result, policy: applied, header: { from: "a.example" } };
  const response = { status, policy, rr, sp, np, testMode, policyDomain: at ?? "a.example" };
  return dmarcVerdict({ response: response as unknown as Response } as Evaluated);
}

test.each<[name: string, given: Given, policy: string | null]>([
  ["reject", { policy: "reject" }, "reject"],
  ["quarantine", { policy: "quarantine" }, "quarantine"],
  ["none", { policy: "none" }, "none"],
  ["no policy that RFC 9989 has", { policy: "discard" }, null],
  ["reject for 100 percent", { policy: "reject", rr: "v=DMARC1; p=reject; pct=100" }, "reject"],
  ["reject for 99 percent", { policy: "reject", rr: "v=DMARC1; p=reject; PCT = 99 ;" }, "quarantine"],
  ["reject for 0 percent", { policy: "reject", rr: "v=DMARC1;pct=0;p=reject" }, "quarantine"],
  ["quarantine for 0 percent", { policy: "quarantine", rr: "v=DMARC1; pct=0" }, "quarantine"],
  ["none for 0 percent", { policy: "none", rr: "v=DMARC1; pct=0" }, "none"],
  ["a percentage that is none", { policy: "reject", rr: "v=DMARC1; pct=x" }, "reject"],
])("a domain's policy is read: %s", (_name, given, policy) => {
  expect(verdict(given)).toEqual({ result: "fail", policy: policy as never, domain: "a.example" });
});

const UNSURE: Given = { policy: "quarantine", np: "none", sp: "reject", result: "temperror", at: "example" };
test.each<[name: string, change: Given, policy: string]>([
  ["sp is reject", {}, "reject"],
  ["np is reject", { sp: "none", np: "reject" }, "reject"],
  ["neither sp nor np is reject", { sp: "none" }, "quarantine"],
  ["the record has no np", { np: undefined } as never, "quarantine"],
  ["the domain itself published the policy", { at: "a.example" }, "quarantine"],
  ["the domain is in test mode", { testMode: true }, "quarantine"],
  ["the check could be made", { result: "fail" }, "quarantine"],
  ["a policy was applied", { applied: "quarantine" }, "quarantine"],
])("if it is unknown whether a subdomain exists, and %s, the policy is %s", (_name, change, policy) => {
  expect(verdict({ ...UNSURE, ...change }).policy).toBe(policy as never);
});

test("a message without one author domain has no policy, and is only neutral if it has no author", () => {
  const of = (reason: string) => dmarcVerdict({ response: false, reason } as unknown as Evaluated);
  expect(of("no-author-domain")).toEqual({ result: "none", policy: null, domain: null });
  expect(of("multiple-author-domains")).toEqual({ result: "permerror", policy: null, domain: null });
});
