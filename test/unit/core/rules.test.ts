import { describe, expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";
import {
  addressKey,
  inboxLocalPart,
  isWithin,
  normalizeDomain,
  splitAddress,
} from "../../../src/core/addresses.ts";
import { decodeCursor, encodeCursor } from "../../../src/core/crypto/cursors.ts";
import { AppError } from "../../../src/core/errors.ts";
import { EVENT_OF_STATUS, EVENT_TYPES, subscribes } from "../../../src/core/messages/events.ts";
import { retryDelayMs } from "../../../src/core/time/retry-schedule.ts";
import { deriveKey, seal, unseal } from "../../../src/core/crypto/secretbox.ts";
import { signWebhook } from "../../../src/core/crypto/webhook-signature.ts";
import {
  canMove,
  MOVING,
  type RecipientStatus,
  ROLL_UP_ORDER,
  rollUp,
  TRANSITIONS,
} from "../../../src/core/messages/states.ts";

describe("states", () => {
  test.each<[RecipientStatus[], RecipientStatus]>([
    [["delivered"], "delivered"],
    [["delivered", "queued"], "queued"],
    [["bounced", "sending", "delivered"], "sending"],
    [["queued", "delivery_delayed"], "delivery_delayed"],
    [["delivered", "sent"], "sent"],
    [["rejected", "delivered"], "rejected"],
    [["bounced", "complained"], "complained"],
    [["failed", "rendering_failure"], "rendering_failure"],
  ])("%p roll up to %s", (statuses, expected) => {
    expect(rollUp(statuses)).toBe(expected);
    expect(rollUp([...statuses].reverse())).toBe(expected);
  });

  test("every state has a rank, a row of transitions and an event", () => {
    expect(new Set(ROLL_UP_ORDER)).toEqual(new Set(Object.keys(TRANSITIONS) as RecipientStatus[]));
    for (const status of ROLL_UP_ORDER) expect(EVENT_TYPES).toContain(EVENT_OF_STATUS[status]);
  });

  test("non-final states come before final ones", () => {
    const firstFinal = ROLL_UP_ORDER.findIndex((status) => !MOVING.has(status));
    expect(ROLL_UP_ORDER.slice(firstFinal).some((status) => MOVING.has(status))).toBe(false);
  });

  test("a failure is final except for a complaint, and a delivery can still become a bounce or a complaint", () => {
    for (const status of ["bounced", "failed"] as const)
      expect(ROLL_UP_ORDER.filter((to) => canMove(status, to))).toEqual(["complained"]);
    for (const status of ["rejected", "complained", "rendering_failure"] as const)
      expect(ROLL_UP_ORDER.filter((to) => canMove(status, to))).toEqual([]);
    expect(canMove("delivered", "bounced")).toBe(true);
    expect(canMove("delivered", "sending")).toBe(false);
  });
});

describe("addresses", () => {
  test.each([
    ["ada@example.com", "ada", "example.com"],
    ["Ada.Lovelace+x@EXAMPLE.com", "Ada.Lovelace+x", "example.com"],
    ["o'hara@bücher.example", "o'hara", "xn--bcher-kva.example"],
    ["用户@example.com", "用户", "example.com"],
    [`reply+${"a".repeat(90)}@reply.example.com`, `reply+${"a".repeat(90)}`, "reply.example.com"],
    [`x+${"1234567890-".repeat(9)}z@mail.example.com`, `x+${"1234567890-".repeat(9)}z`, "mail.example.com"],
    [`${"é".repeat(40)}@example.com`, "é".repeat(40), "example.com"],
    ["srs0=?=a?=b@example.com", "srs0=?=a?=b", "example.com"],
    [`${"ab.".repeat(60)}c@example.com`, `${"ab.".repeat(60)}c`, "example.com"],
    [`${"a".repeat(249)}@b.cd`, "a".repeat(249), "b.cd"],
    ["a.ü@example.com", "a.ü", "example.com"],
    [`a@${"b".repeat(63)}.example`, "a", `${"b".repeat(63)}.example`],
  ])("%s is an address", (email, local, domain) => {
    expect(splitAddress(email)).toEqual({ local, domain });
  });

  test.each([
    "",
    "a",
    "@example.com",
    "a@",
    "a b@example.com",
    "a@b@c.example",
    "a..b@example.com",
    ".a@example.com",
    "a.@example.com",
    "a@exa mple.com",
    "a@-example.com",
    "a@example..com",
    "a@[127.0.0.1]",
    "a@127.0.0.1",
    "a@0x7f.1",
    "a@127.0x1",
    "f1@ex.test_",
    "a@ex._test",
    "a\r\nRCPT TO:<b@example.com>",
    "a\0@example.com",
    "<a@example.com>",
    '"a b"@example.com',
    "a@example.com\u202e",
    "a\u202eb@example.com",
    "\ud800@example.com",
    "=?utf-8?q?ceo=40victim.example=00?=@example.com",
    "x=?utf-8?B?Y2VvQHZpY3RpbS5leGFtcGxl?==?utf-8?Q?=00?=@example.com",
    `${"a".repeat(250)}@b.cd`,
    `${"é".repeat(125)}@b.cd`,
    `a@${"b".repeat(64)}.example`,
    `a@${"b.".repeat(126)}example`,
    // 162 octets as typed, 312 on the wire with A-labels.
    `${"a".repeat(64)}@${"ü.".repeat(30)}example`,
  ])("%j is not an address", (email) => {
    expect(splitAddress(email)).toBeNull();
  });

  test.each([
    ["example.com.", "example.com"],
    ["EXAMPLE.Com", "example.com"],
    ["münchen.example", "xn--mnchen-3ya.example"],
    [`${"b.".repeat(125)}c.d`, `${"b.".repeat(125)}c.d`],
    [`${"B.".repeat(125)}c.d`, `${"b.".repeat(125)}c.d`],
    [`${"b.".repeat(125)}c.de`, null],
    [`${"B.".repeat(125)}c.de`, null],
    ["", null],
  ])("the domain %s is %s", (given, expected) => {
    expect(normalizeDomain(given)).toBe(expected);
  });

  test("a subaddress and any letter case reach the same inbox", () => {
    expect(inboxLocalPart("Support+2026-q1")).toBe("support");
    expect(inboxLocalPart("+odd")).toBe("+odd");
    expect(addressKey("Ada@EXAMPLE.com")).toBe("ada@example.com");
  });

  test("two Unicode spellings of a letter make the same address", () => {
    expect(addressKey("cafe\u0301@EXAMPLE.com")).toBe("caf\u00e9@example.com");
    expect(inboxLocalPart("CAFE\u0301+x")).toBe("caf\u00e9");
  });

  test("a name is inside its parent, but not inside a name that only has the same ending", () => {
    expect(isWithin("a.example.com", "example.com")).toBe(true);
    expect(isWithin("example.com", "example.com")).toBe(true);
    expect(isWithin("badexample.com", "example.com")).toBe(false);
  });
});

describe("cursors", () => {
  const key = randomBytes(32);

  test("a cursor decodes to its position for the same scope", () => {
    expect(
      decodeCursor(key, "GET /v1/emails snd_1", encodeCursor(key, "GET /v1/emails snd_1", "msg_2")),
    ).toBe("msg_2");
  });

  test("a cursor of 512 characters is decoded, a longer one is not", () => {
    const position = "p".repeat(372);
    const longest = encodeCursor(key, "scope", position);
    expect(longest).toHaveLength(512);
    expect(decodeCursor(key, "scope", longest)).toBe(position);
    const longer = encodeCursor(key, "scope", `${position}p`);
    expect(() => decodeCursor(key, "scope", longer)).toThrow(AppError);
  });

  test("a cursor holds a position of one character, but never none", () => {
    expect(decodeCursor(key, "scope", encodeCursor(key, "scope", "p"))).toBe("p");
    expect(() => decodeCursor(key, "scope", encodeCursor(key, "scope", ""))).toThrow(AppError);
  });

  const good = encodeCursor(key, "scope", "msg_1");
  // 12 octets of tag and 3 or 4 of position: 20 characters without spare bits, 22 with four.
  const whole = encodeCursor(key, "scope", "abc");
  const loose = encodeCursor(key, "scope", "abcd");
  const twin = String.fromCharCode(loose.charCodeAt(loose.length - 1) + 1);
  test.each([
    ["another scope", "other", good],
    ["an altered position", "scope", `${good.slice(0, -2)}${good.endsWith("A") ? "BB" : "AA"}`],
    ["a cut one", "scope", good.slice(0, 10)],
    ["one with an extra character that fills no byte", "scope", `${whole}A`],
    ["one whose last bits, which fill no byte, are altered", "scope", `${loose.slice(0, -1)}${twin}`],
    ["no base64url", "scope", "!!!"],
    ["an empty one", "scope", ""],
    ["an over-long one", "scope", "A".repeat(513)],
  ])("%s is refused with 400", (_, scope, cursor) => {
    expect(() => decodeCursor(key, scope, cursor)).toThrow(AppError);
  });
});

describe("secrets", () => {
  const key = deriveKey(randomBytes(32), "box");

  test("a sealed text opens only with the same key, and a changed byte is detected", () => {
    const sealed = seal(key, "whsec_ä");
    expect(unseal(key, sealed)).toBe("whsec_ä");
    expect(() => unseal(deriveKey(randomBytes(32), "box"), sealed)).toThrow();
    const bytes = Buffer.from(sealed, "base64url");
    bytes[bytes.length - 1] = (bytes[bytes.length - 1] ?? 0) ^ 1;
    expect(() => unseal(key, bytes.toString("base64url"))).toThrow();
    for (const other of [`${sealed}=`, `${sealed}==`, `${sealed} `, `${sealed}\n`, ` ${sealed}`])
      expect(() => unseal(key, other)).toThrow();
  });

  test("keys for two purposes differ", () => {
    const master = randomBytes(32);
    expect(deriveKey(master, "box")).not.toEqual(deriveKey(master, "cursor"));
  });

  test("the signature is HMAC-SHA256 over time, dot and body, with one field for each secret", () => {
    const hex = (secret: string) => createHmac("sha256", secret).update('1700000000.{"a":1}').digest("hex");
    expect(signWebhook(["new", "old"], 1_700_000_000, '{"a":1}')).toBe(
      `t=1700000000,v1=${hex("new")},v1=${hex("old")}`,
    );
  });
});

describe("retries", () => {
  const schedule = { delaysSeconds: [60, 300, 900], jitter: 0.2 };
  test.each([
    [1, 0.5, 60_000],
    [1, 0, 48_000],
    [2, 0.5, 300_000],
    [3, 0.5, 900_000],
    [4, 0.5, 900_000],
    [400, 0.5, 900_000],
  ])("after attempt %i with chance %d: %i ms", (attempt, random, expected) => {
    expect(retryDelayMs(schedule, attempt, random)).toBe(expected);
  });

  test("a schedule that only adds delay never retries early", () => {
    expect(retryDelayMs({ ...schedule, onlyLonger: true }, 1, 0)).toBe(60_000);
    expect(retryDelayMs({ ...schedule, onlyLonger: true }, 1, 0.999)).toBeGreaterThan(71_000);
  });
});

test("a webhook receives the event types it names, or all if it names a star", () => {
  expect(subscribes(["bounce"], { type: "bounce" })).toBe(true);
  expect(subscribes(["bounce"], { type: "delivery" })).toBe(false);
  expect(subscribes(["*"], { type: "inbound_received" })).toBe(true);
});
