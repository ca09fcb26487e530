// Makes the fixture of this version: `bun test/upgrade/make.ts`, once for each release, on its commit. The running
// service makes one of everything for three projects; then the database and the answers of every read are kept. A fixture
// that exists is never made again.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../../src/store/embedded/connection.ts";
import { VERSION } from "../../src/version.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { answersAt, makeEstate, makeFanOut } from "../support/recorded-answers.ts";
import { startWorld, type World } from "../support/tenants.ts";
import { DUE, dueRows, type Snapshot, writeFixture } from "./fixture.ts";

const world = await startWorld({ ROLES: "api,worker" });
const paths = await makeEstate(world);
const scheduled = await schedule(world);
await until(async () => (await waiting(world)) === 0);
// Without workers nothing changes any more.
await world.service.restart({ ROLES: "api" });
await makeFanOut(world);
const { service } = world;
const due: Snapshot["due"] = {};
for (const table of Object.keys(DUE) as (keyof typeof DUE)[])
  due[table] = await service.app.db.all(dueRows(table));
const snapshot = {
  version: VERSION,
  at: Date.now(),
  masterKey: readFileSync(join(service.folder, "master.key"), "utf8").trim(),
  answers: await answersAt(service.url, paths),
  due,
  scheduled,
};
const copy = join(newFolder("fixture"), "postrider.db");
copyDatabase(join(service.folder, "postrider.db"), copy);
await world.stop();
writeFixture(snapshot, readFileSync(copy));
process.exit();

async function schedule({ home, call }: World): Promise<Snapshot["scheduled"]> {
  const item = {
    from: `desk@${home.domain}`,
    to: "ada@example.com",
    subject: "Later",
    text: "x",
    scheduledAt: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const { json } = await call("POST", "/v1/emails", { key: home.key }, item);
  return { id: json.id, key: home.key };
}

async function waiting({ service: { app } }: World): Promise<number> {
  const row = await app.db.first<{ n: number }>(
    "SELECT count(*) AS n FROM recipients WHERE claimed_by IS NOT NULL OR due_at < ?",
    [Date.now() + 1000],
  );
  return row?.n ?? 0;
}
