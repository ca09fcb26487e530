import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { newFolder } from "../support/folder.ts";
import { HURRIED_PROCESS, hurried, hurriedEnv } from "../support/hurried-clock.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";
import { postrider } from "./command-program.ts";

setDefaultTimeout(240_000);

const OLD = "o".repeat(40);
const NEW = "n".repeat(40);
/** Times as fast as the system's clock: processes report their keys every 15 seconds. */
const HURRY = 10;
const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const running: RoleProcess[] = [];
afterAll(async () => {
  await Promise.all(running.map((one) => one.kill()));
});

test("two processes with the key in their settings change it without a refused request", async () => {
  const base = { DATA_DIR: newFolder("rotation"), DELIVERY: "capture", ROOT_API_KEY, ...hurriedEnv(HURRY) };
  const both = { MASTER_KEY: NEW, MASTER_KEY_OLD: OLD };
  const start = async (roles: string, keys: Record<string, string>) => {
    const one = await startRole({ ...base, ROLES: roles, ...keys }, HURRIED_PROCESS);
    running.push(one);
    return one;
  };
  let api = await start("api", { MASTER_KEY: OLD });
  let worker = await start("worker", { MASTER_KEY: OLD });
  const hook = { url: "https://hook.example/", eventTypes: ["*"] };
  const made = await callRole(api, ROOT_API_KEY, "POST", "/v1/webhooks", hook);
  expect(made.status).toBe(201);
  const rotate = () => postrider(["master-key", "rotate", "--json"], { ...base, ...both }, hurried(HURRY));

  // The worker still has one key alone.
  await api.terminate();
  api = await start("api", both);
  const early = await rotate();
  expect([early.code, early.stderr]).toEqual([
    1,
    expect.stringContaining(`(pid ${worker.pid}). Nothing was changed`),
  ]);

  await worker.terminate();
  worker = await start("worker", both);
  let over = false;
  const statuses = new Set<number>();
  const load = (async () => {
    for (; !over; await Bun.sleep(50)) {
      const path = `/v1/webhooks/${made.body.id}/rotate-secret`;
      statuses.add((await callRole(api, ROOT_API_KEY, "POST", path)).status);
    }
  })();
  const ran = await rotate();
  over = true;
  await load;
  expect([ran.code, ran.json()]).toMatchObject([0, [{ lost: 0 }]]);
  expect([...statuses]).toEqual([200]);

  // The new key alone is enough, and the old one is refused.
  await Promise.all([api.terminate(), worker.terminate()]);
  await expect(startRole({ ...base, ROLES: "api", MASTER_KEY: OLD })).rejects.toThrow("master-key reset");
  api = await start("api", { MASTER_KEY: NEW });
  expect(
    (await callRole(api, ROOT_API_KEY, "POST", `/v1/webhooks/${made.body.id}/rotate-secret`)).status,
  ).toBe(200);
});
