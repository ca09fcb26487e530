/** JSON that is bad for the reader of request bodies, for the checks of a message and for the fingerprint of a request. */
import { checkSend } from "../../../../src/core/messages/send-rules.ts";
import { readJson } from "../../../../src/http/json/build.ts";
import { fingerprint } from "../../../../src/http/json/fingerprint.ts";
import { runAtOnce } from "../../../../src/http/json/steps.ts";
import { asOctets, casesOf, repeated, type WorstCase } from "./worst-case.ts";

/** As `MAX_BODY_BYTES` has it. */
const MAX_BODY_OCTETS = 40 * 1024 * 1024;
const LIMITS = {
  maxRecipients: 50,
  maxMessageBytes: 25 * 1024 * 1024,
  maxAttachments: 20,
  maxScheduleDays: 30,
};

/** Reads a body as a send is read. All steps count together, though the event loop has turns between them. */
function read(body: Buffer): unknown {
  try {
    const value = runAtOnce(readJson(body));
    return [runAtOnce(fingerprint(value)), checkSend(value, LIMITS, 0)];
  } catch {
    return null;
  }
}

const STRINGS = ["a", "\\n", "\\u0041", '\\"', "\u00c3\u00a9", " ", "\\ud800", "\\"];
const ITEMS = [
  "[",
  "{}",
  "1,",
  '"a",',
  '{"a":1},',
  '{"email":"a@b.example"},',
  "[],",
  " ",
  "\t\n",
  "1",
  "-",
  "1e9,",
];

/** All of them. */
export const JSON_CASES: readonly WorstCase[] = [
  ...casesOf("JSON", MAX_BODY_OCTETS, read, {
    ...asOctets(repeated(STRINGS, '{"text":"', '"}')),
    ...asOctets(repeated(STRINGS.slice(0, 3), '{"', '":1}')),
    ...asOctets(repeated(ITEMS, '{"to":[', "1]}")),
    ...asOctets(repeated(['{"a":', '"a":1,', '"a"', ":", ","], '{"data":{', '"b":1}}')),
    ...asOctets(repeated(["[", "{", '"', "nul", '{"a":', "]", "\0"])),
  }),
];
