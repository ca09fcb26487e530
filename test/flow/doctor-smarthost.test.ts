import { afterEach, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { systemClock } from "../../src/clock.ts";
import { smarthostCheck } from "../../src/flows/health/smarthost.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { parseSmarthost } from "../../src/smtp/client/smarthost.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A plain-text relay that knows one password. Returns its port and the commands it got. */
async function relay(greeting = "220 relay.test"): Promise<{ port: number; told: string[] }> {
  const told: string[] = [];
  const good = Buffer.from("\0user\0p@ss").toString("base64");
  const server = createServer((socket) => {
    socket.write(`${greeting}\r\n`);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      const line = bytes.toString().trim();
      told.push(line.split(" ")[0] ?? "");
      if (line.startsWith("EHLO")) socket.write("250-relay.test\r\n250 AUTH PLAIN\r\n");
      else if (line.startsWith("AUTH"))
        socket.write(line.endsWith(good) ? "235 yes\r\n" : "535 5.7.8 no\r\n");
      else socket.end("221 bye\r\n");
    });
  });
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  return { port: typeof address === "object" && address !== null ? address.port : 0, told };
}

async function look(url: string): Promise<string> {
  const clock = systemClock;
  const resolver = createResolver({ clock }, { servers: [{ ip: "127.0.0.1", port: 1 }], tries: 1 });
  const parts = { clock, resolver, hostname: "mx.mail.test" };
  const found = await smarthostCheck(parts, () => parseSmarthost(url)).run();
  return `${found.status} ${found.message}`;
}

test("doctor logs in at the smarthost as a delivery would, and leaves before any mail", async () => {
  const { port, told } = await relay();
  const at = `127.0.0.1 [127.0.0.1] port ${port}`;
  expect(await look(`smtp://127.0.0.1:${port}`)).toBe(`ok ${at} greets us, without encryption.`);
  expect(await look(`smtp://user:p%40ss@127.0.0.1:${port}?insecure=1`)).toBe(
    `ok ${at} accepts our login, without encryption.`,
  );
  expect(told).toEqual(["EHLO", "QUIT", "EHLO", "AUTH", "QUIT"]);
});

test("doctor reports the obstacle between us and the smarthost", async () => {
  const { port } = await relay();
  const closed = await relay("554 go away");
  expect(await look(`smtp://user:wrong@127.0.0.1:${port}?insecure=1`)).toContain(
    "login refused: 535 5.7.8 no",
  );
  expect(await look(`smtp://user:p%40ss@127.0.0.1:${port}`)).toContain("STARTTLS is not offered");
  expect(await look(`smtp://127.0.0.1:${closed.port}`)).toMatch(/^fail .*554.*go away/);
  expect(await look("smtp://127.0.0.1:1")).toMatch(/^fail .*connection failed/);
  expect(await look("smtp://relay.nowhere.test")).toBe("fail relay.nowhere.test has no address.");
});
