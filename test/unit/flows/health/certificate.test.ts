import { expect, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../../../src/core/time/units.ts";
import { certificateCheck } from "../../../../src/flows/health/certificate.ts";
import { selfSignedCertificate } from "../../../../src/smtp/listener/self-signed.ts";
import type { CertificateRecord } from "../../../../src/store/domains/certificates.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const HOST = "mx.mail.test";
const clock = manualClock();
const now = clock.now();
const { cert: chain } = await selfSignedCertificate(HOST, now);

function record(changes: Partial<CertificateRecord>, daysLeft = 30): CertificateRecord {
  const times = { issuedAt: now - 60 * DAY_MS, notAfter: now + daysLeft * DAY_MS, servedFrom: 0 };
  return {
    id: "mail.test",
    domainId: null,
    directory: "https://ca.test/dir",
    names: ["mail.test", HOST],
    issued: { chain, sealedKey: "sealed", ...times },
    renewAt: now + DAY_MS,
    order: null,
    sealedOrderKey: null,
    dueAt: now + HOUR_MS,
    failures: 0,
    lastError: null,
    ...changes,
  };
}

const lastError = { text: "dns: NXDOMAIN looking up TXT", at: now };

test.each<[string, CertificateRecord | null, string, RegExp]>([
  ["before the first order", null, "warn", /No certificate has been ordered yet/],
  ["while the first order is pending", record({ issued: null }), "warn", /is being ordered/],
  [
    "after the first order failed",
    record({ issued: null, lastError }),
    "fail",
    /no certificate for .*NXDOMAIN/,
  ],
  [
    "if a renewal fails with weeks left",
    record({ lastError }),
    "warn",
    /cannot be renewed and has 30 days left: dns: NX/,
  ],
  ["if a renewal fails with days left", record({ lastError }, 6), "fail", /has 6 days left/],
  ["if no process renews", record({ renewAt: now - 2 * DAY_MS }, 28), "fail", /should have been renewed/],
  ["as with files if nothing is wrong with the order", record({}), "warn", /is self-signed/],
])("the check of an ordered certificate tells %s", async (_when, found, status, says) => {
  const check = certificateCheck({
    clock,
    hostname: HOST,
    ordered: true,
    served: async () => ({ source: "acme", chain, record: found }),
  });
  const { message, fix, ...finding } = await check.run();
  expect(finding.status).toBe(status as typeof finding.status);
  expect(message).toMatch(says);
  expect(fix).toBeDefined();
});

test.each([
  ["ca.test cannot be reached: ECONNREFUSED", "ACME_DIRECTORY"],
  ["dns: NXDOMAIN", "our zone is delegated"],
])("after %p, the fix speaks of %s", async (text, says) => {
  const failed = record({ issued: null, lastError: { text, at: now } });
  const check = certificateCheck({
    clock,
    hostname: HOST,
    ordered: true,
    served: async () => ({ source: "acme", chain, record: failed }),
  });
  expect((await check.run()).fix).toContain(says);
});
