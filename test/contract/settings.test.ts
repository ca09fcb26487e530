import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withSettings } from "../../scripts/settings.ts";
import { ConfigError, loadConfig } from "../../src/config.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { envFiles } from "../support/doc-page.ts";
import { newFolder } from "../support/folder.ts";

test("a secret is read from the file that NAME_FILE names", () => {
  const file = join(newFolder("config"), "key");
  writeFileSync(file, `${"k".repeat(40)}\n`);
  expect(loadConfig({ ROOT_API_KEY_FILE: file }).rootApiKey).toBe("k".repeat(40));
});

test("a secret's file that cannot be read is a configuration error", () => {
  expect(() => loadConfig({ ROOT_API_KEY_FILE: "/nowhere" })).toThrow(ConfigError);
  expect(() => loadConfig({ ROOT_API_KEY_FILE: "/nowhere" })).toThrow("ROOT_API_KEY_FILE");
});

test("docs/settings.md has the table of settings that scripts/settings.ts makes", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../docs/settings.md")).text();
  expect(withSettings(page)).toBe(page);
});

test("the settings file of the production checklist names settings that exist, and all agree", async () => {
  const [file = {}] = await envFiles("docs/install.md");
  const known = SETTINGS.map(({ name }) => name);
  expect(Object.keys(file).filter((name) => !known.includes(name))).toEqual([]);
  expect(loadConfig(file).delivery).toBe("mx");
});
