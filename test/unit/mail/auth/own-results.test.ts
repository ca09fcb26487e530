import { describe, expect, test } from "bun:test";
import { withoutOwnResults } from "../../../../src/mail/auth/own-results.ts";

const HOST = "mx.ours.test";

function left(field: string): string {
  const raw = Buffer.from(`A: 1\r\n${field}\r\nB: 2\r\n\r\nAuthentication-Results: ${HOST}; x\r\n`, "latin1");
  return Buffer.from(withoutOwnResults(raw, HOST)).toString("latin1");
}

const NONE = `A: 1\r\nB: 2\r\n\r\nAuthentication-Results: ${HOST}; x\r\n`;

describe("an Authentication-Results field in our name is removed", () => {
  test.each([
    `Authentication-Results: ${HOST}; dmarc=pass`,
    `Authentication-Results:${HOST}; dmarc=pass`,
    `AUTHENTICATION-RESULTS : MX.Ours.Test 1;\r\n\tdmarc=pass\r\n (x)`,
    `Authentication-Results:\r\n ${HOST}\r\n ; dmarc=pass`,
    `Authentication-Results: (a;b (c) \\)) "${HOST}"; dmarc=pass`,
    `Authentication-Results: ${HOST}.; dmarc=pass`,
    `Authentication-Results: ( ${HOST}; dmarc=pass`,
    `Authentication-Results: ${HOST}/1`,
    `Authentication-Results: ${HOST}, x; dmarc=pass`,
    `Authentication-Results: ${HOST}:25; dmarc=pass`,
    `Authentication-Results: ${HOST}; a\r\nAuthentication-Results: ${HOST}; b`,
  ])("%j", (field) => {
    expect(left(field)).toBe(NONE);
  });
});

test.each([
  `Authentication-Results: mx.other.test; dkim=pass header.d=${HOST}`,
  `Authentication-Results: (by ${HOST}) mx.other.test; spf=pass`,
  `Authentication-Results: not${HOST}; spf=pass`,
  `X-Authentication-Results: ${HOST}; spf=pass`,
  `X: 1\r\n Authentication-Results: ${HOST}; spf=pass`,
])("%j is kept", (field) => {
  expect(left(field)).toContain(`\r\n${field}\r\n`);
});
