import { beforeAll, describe, expect, test } from "bun:test";
import type { DeliveryReport } from "../../src/smtp/client/delivery.ts";
import type { TestMx } from "../support/mx.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";
import { clientHarness, type Given } from "./client-harness.ts";

const { peer, send: sendTo } = clientHarness();
let ca: KeyAndCert;
let cert: KeyAndCert;

beforeAll(async () => {
  ca = await makeCa();
  cert = await makeCert(["mx.test", "127.0.0.1"], ca);
});

/** Delivers one message. If no authority is given, the peers' authority is trusted. */
function send(mx: TestMx, given: Given = {}): Promise<DeliveryReport> {
  return sendTo(mx, { trusted: ca.cert, ...given });
}

describe("TLS", () => {
  test("is used if it is offered, and reported as verified if it is", async () => {
    const mx = peer({ tls: cert });
    const report = await send(mx);
    expect(report).toMatchObject({
      tls: expect.stringMatching(/^TLSv1\.3 /),
      tlsVerified: true,
      mx: "mx.test",
      ip: "127.0.0.1",
    });
    expect((await mx.messages.reached(1)).tls).toBe(true);
    expect(mx.commands.items.slice(0, 3)).toEqual(["EHLO us.test", "STARTTLS", "EHLO us.test"]);
  });

  test("TLS with a bad certificate is better than no TLS", async () => {
    const mx = peer({ tls: cert });
    const hosts = [{ name: "other.test", addresses: ["127.0.0.1"] }];
    const report = await send(mx, { to: { hosts } });
    expect(report).toMatchObject({ result: { code: 250 }, tlsVerified: false });
    expect((await mx.messages.reached(1)).tls).toBe(true);
  });

  test("TLS that is not offered is skipped unless it is required", async () => {
    const mx = peer();
    expect(await send(mx)).toMatchObject({ result: { code: 250 }, tls: null, tlsVerified: false });
    const { result } = await send(mx, { to: { tls: "verified" } });
    expect(result).toEqual({ kind: "trouble", stage: "starttls", reason: "STARTTLS is not offered" });
    expect(mx.messages.items).toHaveLength(1);
  });

  test("TLS that is refused is skipped unless it is required", async () => {
    const mx = peer({ tls: cert, answers: { STARTTLS: "454 4.7.0 not now" } });
    expect(await send(mx)).toMatchObject({ result: { code: 250 }, tls: null });
    expect((await send(mx, { to: { tls: "verified" } })).result).toMatchObject({
      kind: "trouble",
      stage: "starttls",
    });
  });

  test.each(["other.test", "192.0.2.1"])(
    "that must be verified accepts no certificate without %s",
    async (name) => {
      const mx = peer({ tls: cert });
      const hosts = [{ name, addresses: ["127.0.0.1"] }];
      const { result } = await send(mx, { to: { hosts, tls: "verified" } });
      expect(result).toMatchObject({
        kind: "trouble",
        stage: "starttls",
        reason: expect.stringContaining("ALTNAME"),
      });
      expect(mx.commands.items).toEqual(["EHLO us.test", "STARTTLS"]);
    },
  );

  test("verified TLS accepts no certificate of an unknown authority", async () => {
    const mx = peer({ tls: await makeCert(["mx.test"]) });
    expect((await send(mx, { to: { tls: "verified" } })).result).toMatchObject({
      kind: "trouble",
      stage: "starttls",
    });
  });

  test("is verified for a host that is named by its address", async () => {
    const mx = peer({ tls: cert });
    const hosts = [{ name: "127.0.0.1", addresses: ["127.0.0.1"] }];
    expect(await send(mx, { to: { hosts, tls: "verified" } })).toMatchObject({
      result: { code: 250 },
      tlsVerified: true,
    });
  });

  test("a TLS handshake that hangs is given up, and its connection closed", async () => {
    const mx = peer({ extensions: ["STARTTLS"], answers: { STARTTLS: "220 go" } });
    const { result } = await send(mx, { to: { tls: "encrypted" }, timeouts: { tls: 50 } });
    expect(result).toEqual({ kind: "trouble", stage: "starttls", reason: "TLS handshake timed out" });
    await mx.closed.reached(1);
  });

  test("TLS whose handshake fails is skipped on a second connection unless it is required", async () => {
    const mx = peer({ extensions: ["STARTTLS"], answers: { STARTTLS: "220 go" } });
    mx.set({ EHLO: "250-mx.test\r\n250 STARTTLS" });
    // Without a certificate the peer reads the handshake as the beginning of a command, and does not answer.
    expect(await send(mx, { timeouts: { tls: 100 } })).toMatchObject({ result: { code: 250 }, tls: null });
    expect(mx.connections.items).toHaveLength(2);
    const { result } = await send(mx, { to: { tls: "verified" }, timeouts: { tls: 100 } });
    expect(result).toMatchObject({ kind: "trouble", stage: "starttls" });
  });

  test.each(["220 go\r\n250 injected", "220 go\r\n250-half"])(
    "plain bytes after %j end the session",
    async (answer) => {
      const mx = peer({ tls: cert, answers: { STARTTLS: answer } });
      const { result } = await send(mx, { to: { tls: "verified" } });
      expect(result).toMatchObject({ kind: "trouble", stage: "starttls" });
      expect(mx.messages.items).toEqual([]);
    },
  );

  test("a peer may expect TLS from the first octet", async () => {
    const mx = peer({ tls: cert, implicitTls: true });
    expect(await send(mx, { to: { implicitTls: true, tls: "verified" } })).toMatchObject({
      result: { code: 250 },
      tlsVerified: true,
    });
    expect((await send(peer(), { to: { implicitTls: true }, timeouts: { tls: 300 } })).result).toMatchObject({
      kind: "trouble",
      stage: "starttls",
    });
  });

  test("is not started if it is disabled", async () => {
    const mx = peer({ tls: cert });
    expect(await send(mx, { to: { tls: "never" } })).toMatchObject({ result: { code: 250 }, tls: null });
  });
});

describe("login", () => {
  const auth = { user: "grüß", pass: "geheim", insecure: false };
  const plain = Buffer.from("\0grüß\0geheim").toString("base64");
  const encoded = (text: string): string => Buffer.from(text).toString("base64");

  test.each([
    [["AUTH LOGIN PLAIN"], [`AUTH PLAIN ${plain}`]],
    [["AUTH LOGIN"], ["AUTH LOGIN", encoded("grüß"), encoded("geheim")]],
  ])("a login with %j sends %j, and hides it in the transcript", async (extensions, commands) => {
    const mx = peer({ tls: cert, extensions });
    const report = await send(mx, { to: { auth, tls: "verified" } });
    expect(report.result).toMatchObject({ code: 250 });
    expect(mx.commands.items.slice(3, 3 + commands.length)).toEqual(commands);
    const shown = JSON.stringify(report);
    for (const secret of [plain, "geheim", encoded("geheim"), encoded("grüß")])
      expect(shown).not.toContain(secret);
  });

  test.each([
    ["in the clear", {}, "never"],
    ["if STARTTLS was stripped", {}, "opportunistic"],
    ["over an invalid certificate", { tls: true }, "opportunistic"],
  ] as const)("login is not tried %s", async (_, options, tls) => {
    const selfSigned = await makeCert(["mx.test"]);
    const mx = peer({ extensions: ["AUTH PLAIN"], ...("tls" in options ? { tls: selfSigned } : {}) });
    const { result } = await send(mx, { to: { auth, tls } });
    expect(result).toMatchObject({ kind: "trouble", stage: "auth" });
    expect(mx.commands.items.filter((line) => line.startsWith("AUTH"))).toEqual([]);
  });

  test("a plain-text login is made only if it is allowed", async () => {
    const mx = peer({ extensions: ["AUTH PLAIN"] });
    expect((await send(mx, { to: { auth: { ...auth, insecure: true } } })).result).toMatchObject({
      code: 250,
    });
    expect(mx.commands.items[1]).toBe(`AUTH PLAIN ${plain}`);
  });

  test.each([["AUTH PLAIN"], ["AUTH LOGIN"]])(
    "by %s is hidden even if the peer quotes it",
    async (mechanism) => {
      const quote = (line: string): string =>
        `500 5.5.1 Unknown: "${line}" ${line.toUpperCase()} ${line.slice(0, -9)}`;
      const mx = peer({ tls: cert, extensions: [mechanism], answers: { AUTH: quote } });
      const report = await send(mx, { to: { auth, tls: "verified" } });
      expect(report.result).toMatchObject({
        reason: expect.stringMatching(/^login refused: 500 5\.5\.1 Unknown: .*\*\*\*/),
      });
      const shown = JSON.stringify(report).toLowerCase();
      // Whole or in part.
      for (const secret of [plain, encoded("geheim")])
        expect(shown).not.toContain(secret.slice(0, 4).toLowerCase());
    },
  );

  test.each([
    ["535 5.7.8 wrong", ["AUTH PLAIN"], "login refused: 535 5.7.8 wrong"],
    ["535 5.7.8 wrong", ["AUTH LOGIN"], "login refused: 535 5.7.8 wrong"],
    ["235 ok", ["AUTH CRAM-MD5"], "neither"],
    ["235 ok", [], "neither"],
  ])(
    "a login that ends with %j, offered %j, is a temporary failure: the message waits",
    async (answer, extensions, reason) => {
      const mx = peer({ tls: cert, extensions, answers: { AUTH: answer } });
      const { result } = await send(mx, { to: { auth, tls: "verified" } });
      expect(result).toEqual({ kind: "trouble", stage: "auth", reason: expect.stringContaining(reason) });
      expect(mx.messages.items).toEqual([]);
    },
  );
});

describe("a smarthost whose two addresses fail in different ways", () => {
  const LOGIN = ["AUTH PLAIN"];
  let badCert: KeyAndCert;
  beforeAll(async () => {
    badCert = await makeCert(["other.test"], ca);
  });

  /** The behaviour of each kind of address, and the failure that only it gives. */
  const kinds = {
    login: () => ({ extensions: LOGIN, tls: cert, answers: { AUTH: "535 5.7.8 wrong password" } }),
    certificate: () => ({ extensions: LOGIN, tls: badCert }),
    closed: () => null,
  };
  type Kind = keyof typeof kinds;
  const reasons: Record<Kind, { stage: string; reason: unknown }> = {
    login: { stage: "auth", reason: "login refused: 535 5.7.8 wrong password" },
    certificate: { stage: "starttls", reason: expect.stringContaining("certificate of mx.test") },
    closed: { stage: "connect", reason: expect.stringContaining("ECONNREFUSED") },
  };

  test.each<[first: Kind, second: Kind, shown: Kind]>([
    ["login", "closed", "login"],
    ["closed", "login", "login"],
    ["certificate", "closed", "certificate"],
    ["closed", "certificate", "certificate"],
    ["login", "certificate", "login"],
    ["certificate", "login", "login"],
    ["closed", "closed", "closed"],
  ])("%s at one and %s at the other: %s is reported", async (first, second, shown) => {
    const one = peer({ ...kinds[first](), ip: "127.0.0.1" });
    const two = peer({ ...kinds[second](), ip: "127.0.0.2", port: one.port });
    if (first === "closed") one.stopListening();
    if (second === "closed") two.stopListening();
    const report = await send(one, {
      to: {
        hosts: [{ name: "mx.test", addresses: [one.ip, two.ip] }],
        tls: "verified",
        auth: { user: "u", pass: "p", insecure: false },
      },
    });
    expect(report.result).toMatchObject({ kind: "trouble", ...reasons[shown] });
    expect(report.ip).toBe(first === shown && second !== shown ? one.ip : two.ip);
    for (const ip of [one.ip, two.ip]) expect(report.transcript.join("\n")).toContain(`mx.test [${ip}]`);
  });
});
