import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HOUR_MS } from "../../src/core/time/units.ts";
import { MAX_PIECES } from "../../src/store/search/text-query.ts";
import { wordsIn } from "../../src/store/search/words.ts";
import { newFolder } from "../support/folder.ts";
import { answersAt } from "../support/recorded-answers.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { startService } from "../support/service.ts";
import { until } from "../support/poll.ts";
import { WORLD_SETTINGS } from "../support/tenants.ts";
import { DUE, dueRows, fixtureVersions, readFixture } from "./fixture.ts";

/** Milliseconds: a service starts and is asked some hundred times. */
setDefaultTimeout(120_000);

test("each released version has a fixture", () => {
  const changelog = readFileSync(join(import.meta.dir, "../../CHANGELOG.md"), "utf8");
  const released = [...changelog.matchAll(/^## \[(\d+\.\d+\.\d+)\]/gm)].map(([, version = ""]) => version);
  expect(released).toContain("1.0.0");
  expect(fixtureVersions().sort()).toEqual(released.toSorted());
});

/** Opens the database of a version with this program, at the time of the version's answers. */
async function opened(version: string, env: Record<string, string>, laterMs = 0) {
  const { snapshot, database } = readFixture(version);
  const folder = newFolder("upgrade");
  writeFileSync(join(folder, "postrider.db"), database);
  writeFileSync(join(folder, "master.key"), `${snapshot.masterKey}\n`);
  const clock = shiftedClock();
  clock.shift(snapshot.at + laterMs - Date.now());
  const service = await startService({ ...WORLD_SETTINGS, DATA_DIR: folder, ...env }, clock);
  return { service, snapshot };
}

test.each(fixtureVersions())(
  "every list, record, thread and log of a database of version %s is as it was",
  async (version) => {
    const { service, snapshot } = await opened(version, { ROLES: "api" });
    try {
      const { answers } = snapshot;
      expect(answers.length).toBeGreaterThan(50);
      for (const [at, { path, status, body }] of (await answersAt(service.url, answers)).entries()) {
        const before = answers[at];
        // A later version may say more, and never less or something else.
        expect({ path, status, body }).toMatchObject({
          path,
          status: before?.status,
          body: before?.body,
        } as object);
      }
      for (const table of Object.keys(DUE) as (keyof typeof DUE)[])
        expect(await service.app.db.all(dueRows(table))).toMatchObject(snapshot.due[table] ?? []);
    } finally {
      await service.stop();
    }
  },
);

test.each(fixtureVersions())(
  "what was scheduled in a database of version %s leaves when its time comes",
  async (version) => {
    const { service, snapshot } = await opened(version, { ROLES: "api,worker" }, 2 * HOUR_MS);
    try {
      const { id, key } = snapshot.scheduled;
      let status = "";
      while (status !== "delivered") {
        status = (await service.call("GET", `/v1/emails/${id}`, undefined, { key })).body.status;
        await Bun.sleep(20);
      }
    } finally {
      await service.stop();
    }
  },
);

test.each(fixtureVersions())(
  "messages of a database of version %s are found by their words",
  async (version) => {
    const { service, snapshot } = await opened(version, { ROLES: "api,worker" });
    try {
      const { key } = snapshot.scheduled;
      const { data } = (await service.call("GET", "/v1/emails?limit=100", undefined, { key })).body;
      const old = data.filter(({ subject }: { subject: string }) => wordsIn(subject).length > 0);
      expect(old.length).toBeGreaterThan(0);
      for (const { id, subject } of old) {
        const text = wordsIn(subject)
          .map(({ from, to }) => subject.slice(from, to))
          .slice(0, MAX_PIECES);
        const query = new URLSearchParams({ text: text.join(" "), limit: "100" });
        await until(async () => {
          const { body } = await service.call("GET", `/v1/emails?${query}`, undefined, { key });
          return body.data.some((found: { id: string }) => found.id === id);
        });
      }
    } finally {
      await service.stop();
    }
  },
);
