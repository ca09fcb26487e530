import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { lockedHashes, sbomOf } from "../../scripts/sbom.ts";

const ROOT = join(import.meta.dir, "../..");
const lock = readFileSync(join(ROOT, "bun.lock"), "utf8");
const packageJson = (folder: string) => JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));

test("every dependency is in the bill of materials, with the hash that bun.lock pins and its license", () => {
  const program = packageJson(".");
  const names = Object.keys(program.dependencies);
  const packages = names.map((name) => packageJson(join("node_modules", name)));
  const bom = JSON.parse(sbomOf(program, [...packages, ...packages], lockedHashes(lock)));
  expect([bom.bomFormat, bom.specVersion, bom.version]).toEqual(["CycloneDX", "1.6", 1]);
  expect(bom.metadata.component).toMatchObject({ type: "application", name: program.name });
  expect(bom.components).toHaveLength(names.length);
  for (const component of bom.components) {
    const { group, name, version, purl } = component;
    const full = group === undefined ? name : `${group}/${name}`;
    expect(program.dependencies[full]).toBe(version);
    expect(purl).toBe(`pkg:npm/${full.replace("@", "%40")}@${version}`);
    expect(component.hashes[0].content).toMatch(/^[0-9a-f]{128}$/);
    expect(component.licenses).toHaveLength(1);
  }
  const refs = bom.components.map((component: Record<string, unknown>) => component["bom-ref"]);
  expect(bom.dependencies).toEqual([{ ref: bom.metadata.component["bom-ref"], dependsOn: refs }]);
});

test.each([
  ["MIT", [{ expression: "MIT" }]],
  ["(MIT OR Apache-2.0)", [{ expression: "(MIT OR Apache-2.0)" }]],
  ["SEE LICENSE IN FILE", [{ license: { name: "SEE LICENSE IN FILE" } }]],
  [undefined, undefined],
])("a license %p is shown as %j", (license, shown) => {
  const bom = JSON.parse(
    sbomOf({ name: "p", version: "1" }, [{ name: "a", version: "1", license }], new Map()),
  );
  expect(bom.components[0].licenses).toEqual(shown);
});
