import { afterEach, beforeEach, expect, test } from "bun:test";
import { cpSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { newFolder, removeFolder } from "../support/folder.ts";
import { startService, type TestService } from "../support/service.ts";

let service: TestService;
beforeEach(async () => {
  service = await startService();
});
// Work that waits for a writable database: here it waits in vain.
afterEach(async () => {
  await service.app.stop(0).catch(() => undefined);
  await service.stop().catch(() => undefined);
});

const mail = {
  from: { email: "hello@onboarding.mail.test" },
  to: [{ email: "delivered@simulator.mail.test" }],
  subject: "Hello",
  text: "Hello",
};
const send = async () => (await service.call("POST", "/v1/emails", mail)).status;
const isReady = async (): Promise<unknown> => (await fetch(`${service.url}/readyz`)).json();

const LOSSES: readonly [how: string, lose: (file: string) => void][] = [
  ["deleted", (file) => rmSync(file)],
  ["moved away", (file) => renameSync(file, `${file}.old`)],
  [
    "replaced by a copy",
    (file) => {
      cpSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  ],
  ["bereft of its log", (file) => rmSync(`${file}-wal`)],
];

// Otherwise it would be written, into a file without a name.
test.each(LOSSES)("a database that was %s while it was open accepts no mail", async (_how, lose) => {
  expect(await send()).toBe(202);
  lose(join(service.folder, "postrider.db"));
  // A file that was checked a moment ago is not checked again.
  await Bun.sleep(150);
  expect(await send()).toBe(503);
  expect(await isReady()).toEqual({
    status: "unavailable",
    checks: { database: "failed", listener: "ok" },
  });
});

test("a database that is put back is used again", async () => {
  const [folder, aside] = [service.folder, `${service.folder}.aside`];
  renameSync(folder, aside);
  await Bun.sleep(150);
  expect(await send()).toBe(503);
  renameSync(aside, folder);
  expect(await send()).toBe(202);
});

test("a database behind a link is found with its log", async () => {
  const folder = newFolder("link");
  const file = join(folder, "link.db");
  symlinkSync(join(service.folder, "postrider.db"), file);
  await service.restart({ DATABASE_URL: `file:${file}` });
  expect(await send()).toBe(202);
  await Bun.sleep(150);
  expect(await send()).toBe(202);
  rmSync(join(service.folder, "postrider.db-wal"));
  await Bun.sleep(150);
  expect(await send()).toBe(503);
  removeFolder(folder);
});

// If a reader got 200, it would believe that it is unsubscribed.
test("while the database is away, an unsubscribe link is answered 503, as the reference says", async () => {
  const to = [{ email: "owner@example.com" }];
  const { body } = await service.call("POST", "/v1/emails", { ...mail, to, unsubscribeLink: true });
  await service.message(body.id, "delivered");
  const { body: raw } = await service.call("GET", `/v1/emails/${body.id}/raw`);
  const link = /^List-Unsubscribe:\s+<https?:\/\/[^/]+(\/u\/\S+)>/m.exec(raw)?.[1] ?? "";
  const [folder, aside] = [service.folder, `${service.folder}.aside`];
  renameSync(folder, aside);
  await Bun.sleep(150);
  const taken = await service.call("POST", link);
  expect([taken.status, taken.body.error.type]).toEqual([503, "service_unavailable"]);
  const { body: reference } = await service.call("GET", "/docs/json");
  expect(Object.keys(reference.paths["/u/{token}"].post.responses)).toContain("503");
  renameSync(aside, folder);
  expect((await service.call("POST", link)).status).toBe(200);
});
