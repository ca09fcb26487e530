import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";

type IsGenuine = (header: string | null, rawBody: Uint8Array, secret: string) => boolean;

/** The receiver of docs/webhooks.md, as a reader would paste it. */
async function snippet(): Promise<IsGenuine> {
  const page = await Bun.file(join(import.meta.dir, "../../docs/webhooks.md")).text();
  const code = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const file = join(newFolder("receiver"), "snippet.ts");
  await Bun.write(file, `${code}\nexport { isGenuine };\n`);
  return ((await import(file)) as { isGenuine: IsGenuine }).isGenuine;
}

const BODY = Buffer.from('{"id":"dlv_1","data":{"subject":"Grüße"}}');
const NOW = Math.floor(Date.now() / 1000);
const signed = (secret: string, at = NOW) =>
  `v1=${createHmac("sha256", secret).update(`${at}.`).update(BODY).digest("hex")}`;

test.each<[string, string | null, boolean]>([
  ["one of ours", `t=${NOW},${signed("new")}`, true],
  [
    "one of ours, read with the old secret in its grace",
    `t=${NOW},${signed("newer")},${signed("new")}`,
    true,
  ],
  ["another secret's", `t=${NOW},${signed("other")}`, false],
  ["one of another second", `t=${NOW - 1},${signed("new")}`, false],
  ["one of six minutes ago, sent again", `t=${NOW - 360},${signed("new", NOW - 360)}`, false],
  ["a short one", `t=${NOW},v1=ab`, false],
  ["one without a time", signed("new"), false],
  ["anything", "x", false],
  ["none", null, false],
])("the receiver of docs/webhooks.md on a signature that is %s", async (_case, header, genuine) => {
  expect((await snippet())(header, BODY, "new")).toBe(genuine);
});
