import { expect, test } from "bun:test";
import { signOf } from "../../../../src/flows/lanes/sign.ts";

test.each([
  ["421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume", "reputation"],
  ["421 4.7.28 Gmail has detected an unusual rate of email originating from your IP address", "rate"],
  ["421 4.7.0 Too many concurrent SMTP connections from your address", "connections"],
  [
    "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. part of their network is on our block list (S3150)",
    "blocked",
  ],
  ["550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org (S3150) - gcdp a1 - gsmtp", null],
  ["550 5.7.1 TRANSPORT.RULES.RejectMessage; Your IP 192.0.2.1 is on our block list (S3150)", null],
  ["451 4.3.0 temporary failure", null],
  ["450 4.2.0 Greylisted, please try again in 300 seconds", null],
  ["550 5.1.1 no such user", null],
  ["452 4.2.2 mailbox full", null],
])("the sign of %s is %s", (line, kind) => {
  const [, code = "", enhanced = "", text = ""] = /^(\d+) (\S+) (.*)$/.exec(line) ?? [];
  expect(signOf({ stage: "mail", code: Number(code), enhanced, text })?.kind ?? null).toBe(kind as "rate");
});
