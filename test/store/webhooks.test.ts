import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Statement } from "../../src/store/engine/client.ts";
import { type PushTarget, pushTarget } from "../../src/store/webhooks/webhook-deliveries.ts";
import {
  disableWebhook,
  insertWebhook,
  noteWebhookFailure,
  noteWebhookSuccess,
  rotateSecret,
} from "../../src/store/webhooks/webhooks.ts";
import { type TestApi, testApi } from "../support/api.ts";

const NOW = 1_750_000_000_000;
const URL = "https://hooks.example/in";

let api: TestApi;
let mine: string;
let stranger: string;
beforeAll(async () => {
  api = await testApi();
  mine = api.acme.a.id;
  stranger = api.acme.b.id;
});
afterAll(() => api.close());

let made = 0;

/** A webhook that has been failing for a moment. */
async function failing(senderId: string): Promise<string> {
  const id = `whk_${made++}`;
  const row = {
    id,
    senderId,
    url: URL,
    enabled: true,
    dialect: "postrider" as const,
    eventTypes: ["*"],
    content: true,
    disabledReason: null,
    failingSince: null,
  };
  await api.db.write([
    insertWebhook({ ...row, createdAt: NOW, updatedAt: NOW }, "sealed"),
    noteWebhookFailure(senderId, id, URL, NOW - 1),
  ]);
  return id;
}

const BEFORE: PushTarget = {
  url: URL,
  enabled: true,
  content: true,
  failingSince: NOW - 1,
  updatedAt: NOW,
  secret: "sealed",
  previousSecret: null,
  previousSecretUntil: null,
};
const LATER = NOW + 5;
const OFF = { enabled: false, updatedAt: LATER };
const disable = (where: Parameters<typeof disableWebhook>[2]) => (sender: string, id: string) =>
  disableWebhook(sender, id, where, "gone", LATER);

test.each<[what: string, statement: (senderId: string, id: string) => Statement, after: Partial<PushTarget>]>(
  [
    [
      "a new secret",
      (sender, id) => rotateSecret(sender, id, "newer", LATER + 1, LATER),
      { secret: "newer", previousSecret: "sealed", previousSecretUntil: LATER + 1, updatedAt: LATER },
    ],
    ["a success", (sender, id) => noteWebhookSuccess(sender, id, URL), { failingSince: null }],
    ["a success at an address it has left", (sender, id) => noteWebhookSuccess(sender, id, `${URL}/old`), {}],
    ["a further failure", (sender, id) => noteWebhookFailure(sender, id, URL, LATER), {}],
    ["disabling a failing webhook", disable({ failingSince: NOW - 1 }), OFF],
    ["an end for failing longer than it has", disable({ failingSince: NOW - 2 }), {}],
    ["an end as its owner left it", disable({ updatedAt: NOW }), OFF],
    ["an end from before its owner changed it", disable({ updatedAt: NOW - 1 }), {}],
  ],
)(
  "%s is of one webhook alone, though others have its address, and of its own project",
  async (_, statement, after) => {
    const [own, sibling, other] = [await failing(mine), await failing(mine), await failing(stranger)];
    await api.db.write([statement(mine, own), statement(mine, other)]);
    expect(await pushTarget(api.db, mine, own)).toEqual({ ...BEFORE, ...after });
    expect(await pushTarget(api.db, mine, sibling)).toEqual(BEFORE);
    expect(await pushTarget(api.db, stranger, other)).toEqual(BEFORE);
    expect(await pushTarget(api.db, mine, other)).toBeNull();
  },
);

test("a first failure is recorded at the right webhook", async () => {
  const [own, moved] = [await failing(mine), await failing(mine)];
  await api.db.write([
    noteWebhookSuccess(mine, own, URL),
    noteWebhookFailure(mine, own, URL, LATER),
    noteWebhookSuccess(mine, moved, URL),
    noteWebhookFailure(mine, moved, `${URL}/old`, LATER),
  ]);
  expect((await pushTarget(api.db, mine, own))?.failingSince).toBe(LATER);
  expect((await pushTarget(api.db, mine, moved))?.failingSince).toBeNull();
});
