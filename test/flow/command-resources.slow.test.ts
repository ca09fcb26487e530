import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { newFolder } from "../support/folder.ts";
import { captureService, onTerminal, postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);
const LIMIT_MS = 90_000;
const { service, env, folder } = captureService();

beforeAll(() => service.start(), LIMIT_MS);
afterAll(async () => {
  await service.remove();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => postrider(args, env);

describe("on the machine of the service, without a key", () => {
  test("a domain is added, verified and listed", async () => {
    const added = await run("domains", "add", "cli.test");
    expect([added.code, added.json()]).toMatchObject([0, [{ domain: "cli.test", status: "verified" }]]);
    expect(await run("domains", "verify", "CLI.test")).toMatchObject({ code: 0 });
    expect((await run("domains", "list")).json()).toMatchObject([
      { domain: "cli.test", verifiedBy: "capture" },
    ]);
  });

  test("a domain without records shows what to publish, and its check exits with 1", async () => {
    const added = await onTerminal(["domains", "add", "pending.example.com"], env);
    expect(added).toMatch(
      /pending\n.*publish these records:\n {2}pr1\._domainkey\.pending\.example\.com CNAME /s,
    );
    const checked = await run("domains", "verify", "pending.example.com");
    expect([checked.code, checked.json()[0]?.status]).toEqual([1, "pending"]);
    expect(await run("domains", "verify", "other.example.com")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("postrider domains add other.example.com"),
    });
  });

  test("an inbox is made and listed, with a warning if its domain does not receive", async () => {
    const made = await run("inboxes", "create", "help@inbox.postrider.localhost", "--name", "Help");
    expect([made.code, made.stderr]).toEqual([0, ""]);
    await run("domains", "add", "quiet.test");
    const quiet = await run("inboxes", "create", "help@quiet.test");
    expect([quiet.code, quiet.stderr]).toEqual([0, expect.stringContaining("does not receive mail yet")]);
    expect((await run("inboxes", "list")).json().map(({ address }) => address)).toEqual([
      "help@quiet.test",
      "help@inbox.postrider.localhost",
    ]);
    expect(await run("inboxes", "list", "--limit", "1")).toMatchObject({
      stderr: expect.stringContaining("more than these 1"),
    });
  });

  test("a webhook is made, with its secret shown once, and listed", async () => {
    const made = await run(
      "webhooks",
      "create",
      "https://hooks.example.com/x",
      "--events",
      "bounce, delivery",
    );
    expect(made.json()).toMatchObject([
      { eventTypes: ["bounce", "delivery"], signingSecret: expect.stringMatching(/^whsec_/) },
    ]);
    expect((await run("webhooks", "list")).json()).toMatchObject([{ signingSecret: "" }]);
  });

  test("a message is sent", async () => {
    const flags = ["--to", "owner@example.com", "--subject", "x", "--text", "x", "--wait"];
    const sent = await run("send", "--from", "Shop <hello@onboarding.postrider.localhost>", ...flags);
    expect([sent.code, sent.json()[0]?.status]).toEqual([0, "delivered"]);
  });

  test("several projects are told apart by --sender; without it, the first one is meant", async () => {
    await run("senders", "create", "--name", "Second");
    expect((await run("domains", "list", "--sender", "second")).json()).toEqual([]);
    expect((await run("domains", "list")).json()).not.toEqual([]);
    expect(await run("domains", "list", "--sender", "third")).toMatchObject({ code: 1 });
  });
});

test("without a key and without the service's data, a command says what it needs", async () => {
  const ran = await postrider(["domains", "list"], { DATA_DIR: newFolder("command") });
  expect([ran.code, ran.stderr]).toEqual([64, expect.stringContaining("POSTRIDER_API_KEY")]);
});
