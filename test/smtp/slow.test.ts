import { expect, setDefaultTimeout, test } from "bun:test";
import type { Socket } from "bun";
import { PHASE_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS } from "../../src/smtp/listener/deadline.ts";
import { Client, type Server, signal, startServer } from "./server-harness.ts";

setDefaultTimeout(60_000);

const CLIENTS = 2000;
const DRIP_MS = 10_000;
/** Both ends of each connection, and some for everything else. */
const DESCRIPTORS = 2 * CLIENTS + 500;
// Bun raises its own soft limit to the hard one.
const hardLimit = Bun.spawnSync(["sh", "-c", "ulimit -Hn"]).stdout.toString().trim();
const enough = hardLimit === "unlimited" || Number(hardLimit) >= DESCRIPTORS;

/** A client that sends an octet now and then, and records the replies. */
interface Dripper {
  drip(octet: string): void;
  text(): string;
  closed(): boolean;
}

/** Connects, sends the opening at once, and resolves when that many replies have come. */
async function dripper(port: number, opening: string, replies: number): Promise<Dripper> {
  let text = "";
  let closed = false;
  const ready = signal();
  const socket: Socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (opened) => void opened.write(opening),
      data: (_socket, chunk) => {
        text += chunk.toString();
        if (text.split(/^\d{3} /m).length > replies) ready.give();
      },
      close: () => {
        closed = true;
      },
    },
  });
  await ready.wait;
  text = "";
  return { drip: (octet) => void socket.write(octet), text: () => text, closed: () => closed };
}

const OPEN = "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n";
/**
 * For each kind: its opening, the number of replies to that, the trickled octets (of a ClientHello for one), and
 * the time and reply of the cut-off.
 */
const KINDS = [
  {
    name: "a command",
    opening: "EHLO x\r\n",
    replies: 2,
    octets: "N",
    cutAfterMs: PHASE_TIMEOUT_MS.command,
    farewell: "421 4.4.2 ",
  },
  {
    name: "a message",
    opening: OPEN,
    replies: 5,
    octets: "x",
    cutAfterMs: TRANSACTION_TIMEOUT_MS,
    farewell: "421 4.4.2 ",
  },
  {
    name: "a TLS handshake",
    opening: "STARTTLS\r\n",
    replies: 2,
    octets: "\x16\x03\x01\x02\x00\x01\x00",
    cutAfterMs: PHASE_TIMEOUT_MS.tls,
    farewell: "",
  },
] as const;

async function goodMail(server: Server): Promise<void> {
  const client = await Client.connect(server.port);
  await client.startMessage();
  expect(await client.say("x\r\n.")).toStartWith("250 ");
  client.destroy();
}

/** Waits until the server's octets have arrived: either all clients are closed, or none is any more. */
async function settled(drippers: readonly Dripper[]): Promise<number> {
  let closed = -1;
  for (let same = 0; same < 5; same++) {
    const now = drippers.filter((one) => one.closed()).length;
    if (now !== closed) same = 0;
    closed = now;
    await Bun.sleep(2);
  }
  return closed;
}

test.skipIf(!enough)(
  `${CLIENTS} slow clients are cut off in time, and ordinary mail flows (skipped if fewer than ${DESCRIPTORS} files may be open)`,
  async () => {
    await using server = await startServer({}, { maxConnections: CLIENTS + 10 });
    const each = Math.floor(CLIENTS / KINDS.length);
    const groups = [];
    for (const kind of KINDS) {
      const drippers: Dripper[] = [];
      for (let batch = 0; batch < each; batch += 100) {
        const some = Array.from({ length: Math.min(100, each - batch) }, () =>
          dripper(server.port, kind.opening, kind.replies),
        );
        drippers.push(...(await Promise.all(some)));
      }
      groups.push({ ...kind, drippers });
    }
    for (let spent = DRIP_MS; spent <= TRANSACTION_TIMEOUT_MS; spent += DRIP_MS) {
      for (const { drippers, octets, cutAfterMs } of groups)
        if (spent <= cutAfterMs)
          for (const one of drippers) one.drip(octets.charAt((spent / DRIP_MS - 1) % octets.length));
      if (spent % (6 * DRIP_MS) === 0) await goodMail(server);
      else await Bun.sleep(0);
      server.clock.advance(DRIP_MS - 1);
      const due = groups.filter(({ cutAfterMs }) => cutAfterMs === spent);
      for (const { name, drippers } of due) expect(await settled(drippers), name).toBe(0);
      server.clock.advance(1);
      for (const { name, drippers, farewell } of due) {
        expect(await settled(drippers), name).toBe(each);
        expect(
          drippers.every((one) => (farewell === "" ? one.text() === "" : one.text().startsWith(farewell))),
        ).toBe(true);
      }
    }
    await goodMail(server);
  },
);
