import { expect, test } from "bun:test";
import { noFacts } from "../../../../src/flows/deliver/outcome.ts";
import { relayMessageId } from "../../../../src/flows/deliver/relay-message-id.ts";

const ID = "0102018f5e6a7b3c-1a2b3c4d-5e6f-4a1b-8c2d-9e0f1a2b3c4d-000000";

test.each([
  ["has the region in its domain", "email-smtp.eu-west-1.amazonaws.com", `Ok ${ID}`, "eu-west-1"],
  ["of the first region has `email` there", "email-smtp.us-east-1.amazonaws.com", `Ok ${ID}`, "email"],
  ["is the same from a FIPS host", "email-smtp-fips.us-west-2.amazonaws.com", `Ok ${ID}`, "us-west-2"],
  ["is none if the reply names no id", "email-smtp.eu-west-1.amazonaws.com", "Ok", null],
  ["is none if the id is a word", "email-smtp.eu-west-1.amazonaws.com", "Ok queued>", null],
  ["is none of another relay", "smtp.example.com", `Ok ${ID}`, null],
  ["is none of a host with such a name in it", "email-smtp.eu-west-1.amazonaws.com.test", `Ok ${ID}`, null],
])("the Message-ID that SES gives %s", (_, mx, text, place) => {
  const reply = { stage: "final", code: 250, enhanced: null, text };
  const found = relayMessageId({ ...noFacts(0), mx, kind: "accepted", reply });
  expect(found).toBe(place === null ? null : `<${ID}@${place}.amazonses.com>`);
});

test("the Message-ID that SES gives is none if it refused the message", () => {
  const reply = { stage: "final", code: 554, enhanced: null, text: `Ok ${ID}` };
  const mx = "email-smtp.eu-west-1.amazonaws.com";
  expect(relayMessageId({ ...noFacts(0), mx, kind: "refused", reply })).toBeNull();
});
