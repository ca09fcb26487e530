import { expect, test } from "bun:test";
import { FORWARD_FIELD, whyNotForwarded } from "../../../../src/core/rules/forwarding.ts";
import type { RuleMail } from "../../../../src/core/rules/rule.ts";
import { fieldsByName } from "../../../../src/mail/reading/shown-headers.ts";
import { headerOnly } from "../../../../src/mail/reading/parse.ts";
import { forwardedMail } from "../../../../src/mail/submitted/forwarded.ts";

/** Characters whose low octets are a line feed, a carriage return and a letter. */
const INBOXES = ["box@in.test", "a\u010ab@in.test", "\u010d@in.test", "łukasz@in.test", "🦊@in.test"];

test.each(INBOXES)("a message that %s has forwarded is known when it comes back", async (inbox) => {
  const bytes = Buffer.from("From: ann@client.test\r\nSubject: Hi\r\n\r\nHello\r\n");
  const copy = { emailId: "msg_1", ruleId: "rul_1", inbox, trace: "", arc: "none", named: [] };
  const whole = { bytes, smtpUtf8: false } as Parameters<typeof forwardedMail>[0];
  const { raw } = await forwardedMail(whole, copy, null, 0);
  expect(raw.toString("latin1")).toMatch(
    /^X-Postrider-Forwarded: [\x21-\x7e]+\r\nFrom: ann@client\.test\r\n/,
  );
  const value = fieldsByName(headerOnly(raw).fields)[FORWARD_FIELD] ?? "";
  const mail = { headers: { [FORWARD_FIELD.toLowerCase()]: value }, mailFrom: "ann@client.test" };
  const back = { ...mail, receivedFields: 1, inboxAddress: inbox } as unknown as RuleMail;
  expect(whyNotForwarded(back, false)).toBe("loop");
  expect(whyNotForwarded({ ...back, inboxAddress: "other@in.test" }, false)).toBeNull();
});

test("a field that a stranger has forged puts no line break into a forward", async () => {
  const bytes = Buffer.from(
    `${FORWARD_FIELD}: a\u010a\u010ab@far.test\r\nFrom: ann@client.test\r\n\r\nHello\r\n`,
  );
  const copy = { emailId: "msg_1", ruleId: "rul_1", inbox: "box@in.test", trace: "", arc: "none", named: [] };
  const whole = { bytes, smtpUtf8: false } as Parameters<typeof forwardedMail>[0];
  const { raw } = await forwardedMail(whole, copy, null, 0);
  expect(raw.toString().split("\r\n")[0]).toBe(`${FORWARD_FIELD}: box@in.test, a%C4%8A%C4%8Ab@far.test`);
});
