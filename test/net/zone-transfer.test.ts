import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { decode } from "dns-packet";
import type { ZoneRecord } from "../../src/net/zone/records.ts";
import { startZoneServer, type ZoneServer } from "../../src/net/zone/server.ts";
import { TCP_IDLE_MS } from "../../src/net/zone/tcp-session.ts";
import type { Transfers } from "../../src/net/zone/transfer.ts";
import { signQuery, type TsigKey } from "../../src/net/zone/tsig.ts";
import { run, titled, toolMissing } from "../support/dns-tools.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { framed, KEY_TEXT, ORIGIN, queryOctets, quietLog, SOA, testZone } from "../support/zone.ts";

const KEY: TsigKey = { name: "to-second", secret: Buffer.from("0123456789abcdef0123456789abcdef") };
const SIGNED = ["-y", `hmac-sha256:${KEY.name}:${Buffer.from(KEY.secret).toString("base64")}`];
/** Enough keys for many messages. */
const KEYS = 3000;

let clock: ManualClock;
let server: ZoneServer;
/** Zones that were read in whole. */
let opened: string[];
let serial: number;
/** Called before each piece of the zone. */
let onPiece: () => Promise<void>;

beforeEach(async () => {
  clock = manualClock(Date.now());
  opened = [];
  serial = SOA.serial;
  onPiece = async () => undefined;
  server = await startZoneServer(
    { clock, log: quietLog(), zone: testZone(), transfers },
    { hosts: ["127.0.0.1"], port: 0 },
  );
});
afterEach(() => server.stop());

const transfers: Transfers = {
  keys: [KEY],
  secondaries: [{ ip: "::ffff:127.0.0.1", port: 53, keyName: KEY.name }],
  async open(origin) {
    opened.push(origin);
    const soa = { name: ORIGIN, ttl: 3600, type: "SOA", data: { ...SOA, serial } } as const;
    return origin === ORIGIN ? { soa, records } : null;
  },
};

async function* records(): AsyncGenerator<readonly ZoneRecord[]> {
  await onPiece();
  yield testZone().records;
  for (let from = 0; from < KEYS; from += 500) {
    await onPiece();
    yield Array.from({ length: 500 }, (_, at): ZoneRecord => {
      const name = `k${from + at}.dkim.${ORIGIN}`;
      return { name, ttl: 3600, type: "TXT", data: KEY_TEXT };
    });
  }
}

async function dig(...args: readonly string[]): Promise<string> {
  const at = ["-p", String(server.port), "@127.0.0.1", "+tries=1", "+norec"];
  return (await run(["dig", ...at, ...args])).output;
}

const signedQuery = (type: string): Buffer => {
  const { octets } = signQuery(queryOctets(ORIGIN, type), KEY, Math.floor(clock.now() / 1000));
  return octets;
};

const DIG = toolMissing("dig", "kdig");
describe.skipIf(DIG !== null)(titled("dig and kdig", DIG), () => {
  test("transfer a zone of many messages, and each signature is right", async () => {
    const lines = (text: string) => text.split("\n").filter((line) => line.startsWith("k")).length;
    const byDig = await dig(...SIGNED, ORIGIN, "AXFR");
    expect(byDig).toMatch(/XFR size: 3013 records \(messages (2\d|3\d), /);
    expect(byDig).not.toMatch(/could not be validated|WARNING/i);
    expect(lines(byDig)).toBe(KEYS);
    const at = ["-p", String(server.port), "@127.0.0.1"];
    const byKdig = await run(["kdig", ...at, ...SIGNED, ORIGIN, "AXFR"]);
    expect([byKdig.code, lines(byKdig.output)]).toEqual([0, KEYS]);
  });

  test("get a signed SOA by UDP and by TCP, and a signed refusal of another's name", async () => {
    for (const way of ["+notcp", "+tcp"]) {
      const output = await dig(...SIGNED, way, ORIGIN, "SOA");
      expect(output).toMatch(/status: NOERROR.*ANSWER: 1.*hmac-sha256\. .* NOERROR 0/s);
      expect(output).not.toMatch(/could not be validated|WARNING/i);
    }
    expect(await dig(...SIGNED, "example.org", "SOA")).toMatch(/status: REFUSED.*hmac-sha256\./s);
  });

  test("get the latest serial at once if a secondary asks, else that of the zone as it is kept", async () => {
    serial++;
    expect(await dig(...SIGNED, "+short", ORIGIN, "SOA")).toContain(` ${SOA.serial + 1} `);
    expect(await dig("+short", ORIGIN, "SOA")).toContain(` ${SOA.serial} `);
    expect(await dig(...SIGNED, `mx.${ORIGIN}`, "SOA")).toMatch(/NOERROR.*ANSWER: 0, AUTHORITY: 1/s);
  });

  test("get a signed answer with TC if it does not fit with its signature", async () => {
    const output = await dig(...SIGNED, "+ignore", `large.${ORIGIN}`, "TXT");
    expect(output).toMatch(/flags: qr aa tc.*hmac-sha256\./s);
    expect(await dig(...SIGNED, `large.${ORIGIN}`, "TXT")).toMatch(/ANSWER: 1/);
  });

  test("IXFR is the SOA alone if the copy is current, else the whole zone", async () => {
    expect(await dig(...SIGNED, ORIGIN, `IXFR=${SOA.serial}`)).toMatch(/XFR size: 1 records/);
    expect(await dig(...SIGNED, ORIGIN, `IXFR=${SOA.serial - 1}`)).toMatch(/XFR size: 3013 records/);
    expect(await dig(...SIGNED, "+notcp", ORIGIN, `IXFR=${SOA.serial - 1}`)).toMatch(/SOA/);
  });

  test.each([-10, 10])("are told that our clock differs by %d minutes", async (minutes) => {
    clock.step(minutes * 60_000);
    expect(await dig(...SIGNED, ORIGIN, "SOA")).toMatch(/status: NOTAUTH.*BADTIME/s);
    await dig(...SIGNED, ORIGIN, "AXFR");
    expect(opened).toEqual([]);
  });
});

const REFUSED_ROWS: [string, string[], RegExp][] = [
  ["without a signature", [], /Transfer failed/],
  ["with a wrong secret", ["-y", `hmac-sha256:${KEY.name}:${"A".repeat(43)}=`], /BADSIG/],
  ["with an unknown key", ["-y", `hmac-sha256:other:${"A".repeat(43)}=`], /BADKEY/],
  ["with another algorithm", ["-y", `hmac-sha512:${KEY.name}:${"A".repeat(43)}=`], /BADKEY/],
  ["from another address", [...SIGNED, "-b", "127.0.0.2"], /Transfer failed/],
];
describe.skipIf(DIG !== null)(titled("no zone is read for a client", DIG), () => {
  test.each(REFUSED_ROWS)("%s", async (_who, args, said) => {
    for (const type of ["AXFR", "IXFR=1"]) expect(await dig(...args, ORIGIN, type)).toMatch(said);
    expect(opened).toEqual([]);
  });
});

test("a zone that we do not hold is refused to a secondary, signed", async () => {
  expect(await dig(...SIGNED, "example.org", "AXFR")).toContain("Transfer failed");
  expect(opened).toEqual(["example.org"]);
});

test("a packet with a TSIG record that is malformed, doubled or not the last is a format error", async () => {
  const { octets } = signQuery(queryOctets(ORIGIN, "SOA"), KEY, Math.floor(clock.now() / 1000));
  const record = octets.subarray(queryOctets(ORIGIN, "SOA").length);
  const twice = Buffer.concat([octets, record]);
  twice.writeUInt16BE(2, 10);
  const cut = Buffer.from(octets);
  // The MAC claims to be longer than the record.
  cut.writeUInt16BE(0xffff, cut.length - 6 - 32 - 2);
  const moved = Buffer.from(octets);
  moved.writeUInt16BE(1, 8);
  moved.writeUInt16BE(0, 10);
  for (const packet of [twice, cut, moved]) expect((await answerTo(packet)).rcode).toBe("FORMERR");
  expect((await answerTo(octets)).rcode).toBe("NOERROR");
});

/** Returns the answer to one packet by TCP. */
async function answerTo(packet: Buffer): Promise<{ rcode: string }> {
  const socket = connect(server.port, "127.0.0.1");
  socket.write(framed(packet));
  const [chunk] = await new Promise<Buffer[]>((resolve) => {
    socket.once("data", (data: Buffer) => resolve([data]));
  });
  socket.destroy();
  return decode((chunk ?? Buffer.alloc(0)).subarray(2)) as unknown as { rcode: string };
}

test("a client that does not read is closed, and the transfer ends", async () => {
  const socket = connect(server.port, "127.0.0.1");
  socket.pause();
  // More than the buffers of both sockets hold.
  let pieces = 0;
  onPiece = async () => {
    pieces++;
  };
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.on("close", () => resolve());
  socket.on("error", () => undefined);
  for (let count = 0; count < 20; count++) socket.write(framed(signedQuery("AXFR")));
  while (opened.length === 0) await Bun.sleep(1);
  let before = -1;
  while (before !== pieces) {
    before = pieces;
    await Bun.sleep(100);
  }
  clock.advance(TCP_IDLE_MS);
  socket.resume();
  await closed;
  // The transfers that wait in the connection are not made.
  expect(opened.length).toBeLessThan(20);
});

test("the connection closes without a last SOA if the zone cannot be read to its end", async () => {
  let pieces = 0;
  onPiece = async () => {
    if (++pieces === 3) throw new Error("the database is gone");
  };
  const output = await dig(...SIGNED, ORIGIN, "AXFR");
  expect(output).not.toContain("XFR size");
  expect(pieces).toBe(3);
});
