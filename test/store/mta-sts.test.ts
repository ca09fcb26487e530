import { afterEach, beforeEach, expect, test } from "bun:test";
import { findStsPolicy, saveStsPolicy, type StsPolicyRecord } from "../../src/store/domains/mta-sts.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";

const NOW = 1_750_000_000_000;
let base: TestDatabase;
beforeEach(async () => {
  base = await testDatabase();
});
afterEach(() => base.remove());

function policy(domain: string, change: Partial<StsPolicyRecord> = {}): StsPolicyRecord {
  const mx = ["mx.in.test", "*.mail.in.test"];
  return { domain, id: "one", mode: "enforce", mx, maxAgeSeconds: 86_400, fetchedAt: NOW, ...change };
}

test("a policy is found as saved, until a newer one replaces it", async () => {
  expect(await findStsPolicy(base.db, "in.test")).toBeNull();
  await saveStsPolicy(base.db, policy("in.test"));
  expect(await findStsPolicy(base.db, "in.test")).toEqual(policy("in.test"));
  const newer = policy("in.test", { id: "two", mode: "none", mx: [], fetchedAt: NOW + 1 });
  await saveStsPolicy(base.db, newer);
  expect(await findStsPolicy(base.db, "in.test")).toEqual(newer);
});

test("one that another process fetched earlier does not replace a newer one", async () => {
  await saveStsPolicy(base.db, policy("in.test", { id: "two" }));
  await saveStsPolicy(base.db, policy("in.test", { fetchedAt: NOW - 1 }));
  expect(await findStsPolicy(base.db, "in.test")).toMatchObject({ id: "two" });
});

test("expired ones are removed when another one is saved", async () => {
  await saveStsPolicy(base.db, policy("old.test", { maxAgeSeconds: 60 }));
  await saveStsPolicy(base.db, policy("young.test", { maxAgeSeconds: 61 }));
  await saveStsPolicy(base.db, policy("in.test", { fetchedAt: NOW + 60_000 }));
  expect(await findStsPolicy(base.db, "old.test")).toBeNull();
  expect(await findStsPolicy(base.db, "young.test")).not.toBeNull();
});

test("over the limit the one that expires next is removed", async () => {
  await saveStsPolicy(base.db, policy("a.test", { maxAgeSeconds: 70 }), 2);
  await saveStsPolicy(base.db, policy("b.test", { maxAgeSeconds: 60 }), 2);
  await saveStsPolicy(base.db, policy("c.test", { maxAgeSeconds: 80 }), 2);
  const left = await Promise.all(["a.test", "b.test", "c.test"].map((name) => findStsPolicy(base.db, name)));
  expect(left.map((found) => found?.domain ?? null)).toEqual(["a.test", null, "c.test"]);
});
