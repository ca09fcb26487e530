import { expect, test } from "bun:test";
import { TURN_OCTETS } from "../../src/smtp/listener/connection.ts";
import { startServer } from "./server-harness.ts";

const MESSAGE_OCTETS = 24 * 1024 * 1024;
/** The most that the socket passes on in one piece. */
const PIECE_OCTETS = 512 * 1024;

/** A separate program that sends a message of one-dot lines as fast as it can. */
const FLOOD = `
  const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
  const lines = Buffer.from("..\\r\\n".repeat(64 * 1024));
  const commands = ["EHLO flood.test", "MAIL FROM:<a@flood.test>", "RCPT TO:<b@in.test>", "DATA"];
  let sent = 0;
  const send = () => {
    while (sent < ${MESSAGE_OCTETS}) {
      sent += lines.length;
      if (!socket.write(lines)) return socket.once("drain", send);
    }
    socket.end(".\\r\\nQUIT\\r\\n");
  };
  socket.on("data", (data) => {
    if (!/^\\d{3} /m.test(data)) return;
    const command = commands.shift();
    if (command !== undefined) socket.write(command + "\\r\\n");
    else if (String(data).startsWith("354")) send();
  });
`;

test("one piece of a flooding peer is read per tick of the event loop", async () => {
  await using server = await startServer({}, { maxMessageBytes: 2 * MESSAGE_OCTETS });
  const flood = Bun.spawn([process.execPath, "-e", FLOOD, String(server.port)], {
    stdout: "ignore",
    stderr: "inherit",
  });
  let before = 0;
  let most = 0;
  while (server.taken.length === 0) {
    await new Promise<void>((next) => setImmediate(next));
    const { held } = server.listener;
    most = Math.max(most, held - before);
    before = held;
  }
  await flood.exited;
  expect(server.taken[0]?.raw.length).toBe((MESSAGE_OCTETS / 4) * 3);
  // Without the limit the socket passes on up to eleven pieces in a row.
  expect(most).toBeLessThanOrEqual(PIECE_OCTETS);
  expect(most).toBeGreaterThan(TURN_OCTETS / 4);
});
