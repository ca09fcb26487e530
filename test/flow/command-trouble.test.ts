import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createServer } from "node:net";
import { newFolder, onTerminal, postrider } from "./command-program.ts";

/** Milliseconds: programs start within seconds where the machine has much else to do. */
setDefaultTimeout(30_000);

const LIMIT_MS = 30_000;

/** A port that another program has, until it is given back. */
async function takenPort(): Promise<{ port: string; free(): void }> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  const port = address === null || typeof address === "string" ? 0 : address.port;
  return { port: String(port), free: () => void server.close() };
}

describe("a start says what it cannot have", () => {
  const nothing = { HOST: "127.0.0.1", PORT: "0", SMTP_HOST: "127.0.0.1", SMTP_PORT: "0" };

  test.each(["SMTP_PORT", "PORT"])(
    "a port that another program has: %s",
    async (name) => {
      const { port, free } = await takenPort();
      const ran = await postrider(["serve"], { ...nothing, DATA_DIR: newFolder(), [name]: port });
      free();
      expect(ran.code).toBe(70);
      expect(ran.stderr).toContain(port);
      expect(ran.stderr).not.toContain("at async");
    },
    LIMIT_MS,
  );

  test(
    "an address that is no machine's here",
    async () => {
      const env = { ...nothing, DATA_DIR: newFolder(), SMTP_HOST: "192.0.2.1" };
      const { code, stderr } = await postrider(["serve"], env);
      expect([code, stderr]).toEqual([70, expect.stringContaining("cannot listen at 192.0.2.1")]);
    },
    LIMIT_MS,
  );

  test(
    "a database in a folder that is not there",
    async () => {
      const env = { ...nothing, DATA_DIR: newFolder(), DATABASE_URL: `file:${newFolder()}/gone/x.db` };
      const ran = await postrider(["serve"], env);
      expect([ran.code, ran.stderr]).toEqual([70, expect.stringContaining("/gone/x.db cannot be opened")]);
    },
    LIMIT_MS,
  );
});

test.each([
  ["a file in no folder", ["backup", "/nowhere/x.db"], 1, "/nowhere/x.db.part cannot be made (ENOENT)"],
  ["a flag's value that begins with a dash", ["readyz", "--timeout", "-3"], 64, "argument is ambiguous\n"],
])("%s is one sentence", async (_name, args, code, says) => {
  const folder = newFolder();
  await postrider(["migrate"], { DATA_DIR: folder });
  const ran = await postrider(args, { DATA_DIR: folder });
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(says)]);
});

test("`config` shows lists that are empty by their default, and flags as they are set", async () => {
  const table = await onTerminal(["config"], { ALLOW_PRIVATE_MX: "1", DNS_SERVERS: "192.0.2.1" });
  expect(table).toMatch(/^DNS_SERVERS +192\.0\.2\.1 +environment$/m);
  expect(table).toMatch(/^PUBLIC_IPS +\(none\) +default$/m);
  expect(table).toMatch(/^HTTP_PROXIES +\(none\) +default$/m);
  expect(table).toMatch(/^ALLOW_PRIVATE_MX +1 +environment$/m);
  expect(table).toMatch(/^ALLOW_PRIVATE_WEBHOOKS +0 +default$/m);
});
