import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { makingKey } from "../../src/core/crypto/key-ring.ts";
import { newFolder } from "../support/folder.ts";

test("a master key gives the same derived keys in every version, so that sealed data, messages and links stay valid", () => {
  const keys = Object.entries(openKeys("a".repeat(64), "/nowhere"));
  expect(
    Object.fromEntries(keys.map(([purpose, key]) => [purpose, Buffer.from(makingKey(key)).toString("hex")])),
  ).toEqual({
    box: "ac640e096915f3e3788477b27075ffb5a3d227f418a0cee8fd17225be49556f3",
    cursor: "8c81c93961e6f490d176a0c924d3eaf5e234a3007b91dcfa805a79652eb4982b",
    verp: "57231126d97a5a48dec5a26175218168fca420ba8b47482940e7908750d71075",
    unsubscribe: "6d72d6ba53dfaf6457e59f8bb9c75d0e459e34d4ee0a04dc32fffbf2b268e982",
    tracking: "d4e2f2ddb7782b7434af751bfa0344811ac81e6db3e3e5011335f65910def4fc",
    session: "3215586d7a1bd38cdfa1849d25450a197018b5c94cc13678ec981e9b738cf4df",
    relay: "9627b7183afa2185311956c94936ee987f61039364ba0e805d5fd1a6de022db3",
    file: "0c85f5bca3af961f120b46bc474893291a4440b9664efdf4ab1cbcb736cb44bd",
    backup: "edae8ad293f0f8f20cddfc964a8c9c38ea61054e2f5eb9617735ad7acd79982f",
  });
});

const MODULE = join(import.meta.dir, "../../src/wiring/store/installation-keys.ts");

test.skipIf(Bun.which("strace") === null)("a new master key is on disk under its name", async () => {
  const [folder, trace] = [newFolder("master-key"), join(newFolder("trace"), "calls")];
  const code = `(await import(${JSON.stringify(MODULE)})).openKeys(null, ${JSON.stringify(folder)})`;
  const calls = ["strace", "-f", "-y", "-e", "trace=fsync,link,linkat", "-o", trace];
  expect(await Bun.spawn([...calls, process.execPath, "-e", code]).exited).toBe(0);
  const [, behind = ""] = readFileSync(trace, "utf8").split(`"${join(folder, "master.key")}"`);
  expect(behind).toMatch(new RegExp(`fsync\\(\\d+<${folder}>`));
});
