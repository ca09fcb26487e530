import { expect, test } from "bun:test";
import { mergedSpf } from "../../../../src/flows/domains/spf-merge.ts";

const OURS = "spf.mail.test";

test.each<[string[], string]>([
  [["v=spf1 include:_spf.google.com ~all"], "v=spf1 include:_spf.google.com include:spf.mail.test ~all"],
  [["v=spf1 ip4:192.0.2.1 a -all"], "v=spf1 ip4:192.0.2.1 a include:spf.mail.test -all"],
  [["v=spf1 -all"], "v=spf1 include:spf.mail.test -all"],
  [["V=SPF1  mx   ?ALL"], "v=spf1 mx include:spf.mail.test ?ALL"],
  [["v=spf1"], "v=spf1 include:spf.mail.test ~all"],
  [["v=spf1 mx ~all include:spf.mail.test"], "v=spf1 mx include:spf.mail.test ~all"],
  [["v=spf1 redirect=_spf.example.net"], "v=spf1 include:spf.mail.test redirect=_spf.example.net"],
  [["v=spf1 a redirect=x.test -all"], "v=spf1 a include:spf.mail.test -all"],
  [["v=spf1 a -all", "v=spf1 a mx ~all"], "v=spf1 a mx include:spf.mail.test -all"],
  [
    ["v=spf1 redirect=x.test", "v=spf1 include:spf.mail.test ~all"],
    "v=spf1 include:x.test include:spf.mail.test ~all",
  ],
])("%p becomes one record that also includes ours, before what ends it", (records, merged) => {
  expect(mergedSpf(records, OURS)).toBe(merged);
});
