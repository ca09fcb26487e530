import { afterAll, beforeAll, expect, test } from "bun:test";
import { wantCertificate } from "../../src/store/domains/certificates.ts";
import { claimDueCertificate } from "../../src/store/domains/due-certificates.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_000_000;
const LEASE_MS = 60_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.remove());

test("a certificate is claimed at its time, once until the lease ends, and nothing is claimed before", async () => {
  const { db } = database;
  const claim = async (now: number) =>
    (
      await claimDueCertificate(db, {
        ids: ["service"],
        domains: null,
        now,
        leaseUntil: now + LEASE_MS,
        farthest: now + 2 * LEASE_MS,
      })
    )?.id ?? null;
  expect(await claim(NOW)).toBeNull();
  const wish = { id: "service", directory: "https://ca.test", names: ["mail.test"] };
  await db.write([wantCertificate(wish, NOW)]);
  expect([await claim(NOW - 1), await claim(NOW), await claim(NOW)]).toEqual([null, "service", null]);
  const until = NOW + LEASE_MS;
  expect([await claim(until - 1), await claim(until)]).toEqual([null, "service"]);
});
