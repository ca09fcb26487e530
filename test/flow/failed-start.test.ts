import { afterEach, expect, test } from "bun:test";
import { join } from "node:path";
import Database from "libsql";
import { reason } from "../support/reason.ts";
import { startService, type TestService } from "../support/service.ts";

/**
 * Milliseconds in which workers that had started would have claimed the message: their first turn comes at once.
 */
const TAKEN_UP_MS = 250;

let service: TestService;
afterEach(() => service.stop());

/** States of all recipients. */
function states(): unknown[] {
  const database = new Database(join(service.folder, "postrider.db"));
  const rows = database.prepare("SELECT status FROM recipients").pluck().all();
  database.close();
  return rows;
}

// If a process ends with claimed mail, its deliveries go unrecorded. If systemd restarts it again and again, each
// start would send some of it once more.
test("a start whose port is in use claims no mail, and the next one delivers it", async () => {
  service = await startService({ ROLES: "api" });
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "hello@onboarding.mail.test" },
    to: [{ email: "owner@example.com" }],
    subject: "Due",
    text: "x",
  });
  const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const ROLES = "api,smtp,worker";
  const failure = await reason(service.restart({ ROLES, PORT: String(other.port) }));
  expect(failure).toMatchObject({ code: "EADDRINUSE" });
  await other.stop(true);
  await Bun.sleep(TAKEN_UP_MS);
  expect(states()).toEqual(["queued"]);
  await service.restart({ ROLES });
  await service.message(body.id, "delivered");
});
