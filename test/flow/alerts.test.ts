import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const ROOT = join(import.meta.dir, "../..");
const RULES = join(ROOT, "deploy/alerts.yaml");
const CASES = join(ROOT, "test/fixtures/alerts.yaml");

const missing = toolMissing("promtool");

/** Runs the cases on rules changed by `change`. Returns promtool's output and exit code. */
async function judged(change: (rules: string) => string) {
  const folder = newFolder("alerts");
  const cases = join(folder, "test/fixtures/alerts.yaml");
  await Bun.write(cases, Bun.file(CASES));
  await Bun.write(join(folder, "deploy/alerts.yaml"), change(await Bun.file(RULES).text()));
  return run(["promtool", "test", "rules", cases]);
}

describe("alerts, as Prometheus evaluates them", () => {
  test.skipIf(missing !== null)(
    titled("each fires on a service that is ill, and none on one that is well", missing),
    async () => {
      expect(await judged((rules) => rules)).toMatchObject({ code: 0 });
    },
  );

  // Each change makes a rule unable to fire, or makes it fire too soon.
  const FAULTS: [what: string, from: string, to: string][] = [
    ["ignoring deferred mail", "> 0.95", "> 1"],
    ["every bounce is too many", "> 0.1", "> 0.01"],
    ["no push fails", '!="succeeded"', '=~"none"'],
    ["ignoring failed commits", "postrider_commit_failures_total", "none"],
    ["ignoring open files", "> 0.85", "> 1"],
    ["sessions up to their share are too many", "> 0.85", "> 0.75"],
  ];
  test.skipIf(missing !== null).each(FAULTS)(
    titled("a fault would be found: %s", missing),
    async (_what, from, to) => {
      expect(await Bun.file(RULES).text()).toContain(from);
      expect((await judged((rules) => rules.replaceAll(from, to))).code).not.toBe(0);
    },
  );

  test("each alert has cases", async () => {
    const names = [...(await Bun.file(RULES).text()).matchAll(/alert: (\w+)/g)].map(([, name = ""]) => name);
    const cases = await Bun.file(CASES).text();
    expect(names).toHaveLength(12);
    for (const name of names) {
      const asked = cases.split("\n").filter((line) => line.includes(`alertname: ${name}`));
      expect([name, asked.some((line) => line.includes("exp_alerts: []"))]).toEqual([name, true]);
      expect([name, asked.some((line) => !line.includes("exp_alerts: []"))]).toEqual([name, true]);
    }
  });
});
