import { describe, expect, test } from "bun:test";
import type { MailauthResolver } from "../../../../src/mail/auth/resolver.ts";
import {
  CheckMemory,
  MAX_ANSWER_CHARS,
  MAX_KEY_CHARS,
  MAX_REMEMBERED,
  MAX_REMEMBERED_LOOKUPS,
} from "../../../../src/mail/auth/check-memory.ts";
import { reason } from "../../../support/reason.ts";

type Zone = Map<string, string[] | string>;

/** A resolver for a zone. A string in it is an error code. */
function asking(zone: Zone, asked: string[] = []): MailauthResolver {
  return async (name, type) => {
    asked.push(`${type} ${name}`);
    const answer = zone.get(name) ?? "ENOTFOUND";
    if (typeof answer === "string") throw Object.assign(new Error(answer), { code: answer });
    return answer;
  };
}

/** A check that queries some names, reports each result, and counts its runs. */
function checkOf(names: readonly string[]) {
  const check = async (resolver: MailauthResolver): Promise<string> => {
    check.made++;
    const said: string[] = [];
    for (const name of names) said.push(await resolver(name, "TXT").then(String, ({ code }) => code));
    return said.join();
  };
  check.made = 0;
  return check;
}

describe("the remembered outcome of a check", () => {
  test("the remembered outcome of a check is used as long as the name servers answer the same, and no longer", async () => {
    const memory = new CheckMemory();
    const zone: Zone = new Map([["a", ["1"]]]);
    const check = checkOf(["a", "b"]);
    const recall = (asked: string[] = []) => memory.recall("key", asking(zone, asked), check);
    expect([await recall(), check.made]).toEqual(["1,ENOTFOUND", 1]);
    const asked: string[] = [];
    expect([await recall(asked), check.made]).toEqual(["1,ENOTFOUND", 1]);
    expect(asked).toEqual(["TXT a", "TXT b"]);
    zone.set("b", ["2"]);
    expect([await recall(), check.made]).toEqual(["1,2", 2]);
    expect([await recall(), check.made]).toEqual(["1,2", 2]);
    zone.set("b", "ENODATA");
    expect([await recall(), check.made]).toEqual(["1,ENODATA", 3]);
    zone.set("a", ["1", ""]);
    expect([await recall(), check.made]).toEqual(["1,,ENODATA", 4]);
  });

  test("belongs to one key", async () => {
    const memory = new CheckMemory();
    const [one, other] = [checkOf(["a"]), checkOf(["b"])];
    const zone: Zone = new Map([["b", ["x"]]]);
    expect(await memory.recall("one", asking(zone), one)).toBe("ENOTFOUND");
    expect(await memory.recall("other", asking(zone), other)).toBe("x");
  });

  test("while a name server fails is not stored, and a stored one is not used", async () => {
    const memory = new CheckMemory();
    const zone: Zone = new Map([["a", ["1"]]]);
    const check = checkOf(["a"]);
    const recall = () => memory.recall("key", asking(zone), check);
    await recall();
    for (const code of ["ESERVFAIL", "ETIMEOUT", "ECONNREFUSED"]) {
      zone.set("a", code);
      expect(await recall()).toBe(code);
      expect(memory.size).toBe(0);
    }
    zone.set("a", ["1"]);
    expect([await recall(), check.made]).toEqual(["1", 5]);
  });

  test("the remembered outcome of a check is not stored if the check throws or abandons a lookup", async () => {
    const memory = new CheckMemory();
    const throwing = memory.recall("key", asking(new Map()), () => Promise.reject(new Error("no")));
    expect(String(await reason(throwing))).toContain("no");
    await memory.recall(
      "key",
      () => new Promise(() => {}),
      async (resolver) => void resolver("a", "TXT"),
    );
    expect(memory.size).toBe(0);
  });

  test("a lookup of a nested check counts for both checks", async () => {
    const memory = new CheckMemory();
    const zone: Zone = new Map([["a", ["1"]]]);
    const [outer, inner] = [checkOf([]), checkOf(["a"])];
    const recall = () =>
      memory.recall("outer", asking(zone), async (noted) => {
        await outer(noted);
        return memory.recall("inner", noted, inner);
      });
    await recall();
    await memory.recall("inner", asking(zone), inner);
    zone.set("a", ["2"]);
    expect([await recall(), outer.made, inner.made]).toEqual(["2", 2, 2]);
    zone.set("a", ["3"]);
    await memory.recall("inner", asking(zone), inner);
    expect([await recall(), outer.made, inner.made]).toEqual(["3", 3, 3]);
    zone.set("a", ["4"]);
    expect(await recall()).toBe("4");
  });
});

describe("is bounded in number", () => {
  const names = (count: number) => Array.from({ length: count }, (_, n) => `n${n}`);
  test.each([
    ["a key", "k".repeat(MAX_KEY_CHARS), checkOf([]), 1],
    ["a key of one character more", "k".repeat(MAX_KEY_CHARS + 1), checkOf([]), 0],
    ["lookups", "key", checkOf(names(MAX_REMEMBERED_LOOKUPS)), 1],
    ["one lookup more", "key", checkOf(names(MAX_REMEMBERED_LOOKUPS + 1)), 0],
    ["answers", "key", checkOf(["full"]), 1],
    ["an answer of one character more", "key", checkOf(["over"]), 0],
  ] as const)("%s", async (_, key, check, size) => {
    const memory = new CheckMemory();
    const room = MAX_ANSWER_CHARS - "full".length - '[""]'.length;
    const zone: Zone = new Map([
      ["full", ["x".repeat(room)]],
      ["over", ["x".repeat(room + 1)]],
    ]);
    await memory.recall(key, asking(zone), check);
    expect(memory.size).toBe(size);
  });

  test("if too many checks are stored, the one unused longest goes first", async () => {
    const memory = new CheckMemory();
    const check = checkOf([]);
    const recall = (key: string) => memory.recall(key, asking(new Map()), check);
    for (let n = 0; n < MAX_REMEMBERED; n++) await recall(`key ${n}`);
    await recall("key 0");
    await recall("one more");
    expect([memory.size, check.made]).toEqual([MAX_REMEMBERED, MAX_REMEMBERED + 1]);
    await recall("key 0");
    expect(check.made).toBe(MAX_REMEMBERED + 1);
    await recall("key 1");
    expect(check.made).toBe(MAX_REMEMBERED + 2);
  });
});
