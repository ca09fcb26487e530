import { expect, test } from "bun:test";
import { join } from "node:path";

const COMPOSE = join(import.meta.dir, "../../src/mail/composing/compose.ts");
const SIZE = 24 * 1024 * 1024;

/** Composes a small message, then one with a large attachment, and prints by how many KiB the peak of memory grew. */
const SCRIPT = `
  const { compose } = await import(${JSON.stringify(COMPOSE)});
  const peak = async () => Number(/VmHWM:\\s+(\\d+)/.exec(await Bun.file("/proc/self/status").text())[1]);
  const bytes = new Uint8Array(${SIZE}).fill(7);
  const file = { filename: "a.bin", contentType: "application/octet-stream", disposition: "attachment" };
  const messageWith = (part) => ({
    from: { email: "ann@example.com" },
    to: [{ email: "bob@example.org" }],
    subject: "Hello",
    text: "Hi Bob\\n",
    messageId: "<m1@example.com>",
    date: 0,
    attachments: [{ ...file, bytes: part }],
  });
  compose(messageWith(bytes.subarray(0, 1024)));
  const before = await peak();
  compose(messageWith(bytes));
  console.log((await peak()) - before);`;

test("composing keeps a large attachment in memory once as bytes and once as encoded text", async () => {
  const child = Bun.spawn([process.execPath, "-e", SCRIPT], { stdout: "pipe" });
  const grownKib = Number(await new Response(child.stdout).text());
  expect(grownKib).toBeGreaterThan(0);
  expect(grownKib).toBeLessThan(110 * 1024);
});
