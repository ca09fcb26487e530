import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AuthResolver } from "../../../../src/mail/auth/resolver.ts";
import {
  type AuthEnvelope,
  type Authentication,
  authenticate,
} from "../../../../src/mail/auth/authenticate.ts";
import { CheckMemory } from "../../../../src/mail/auth/check-memory.ts";

/** The SPF suite of RFC 7208 and the ARC suite of Valimail; tests are skipped where the folder is absent. */
const FIXTURES = join(import.meta.dir, "../../../../shared/corpora/auth-suites/test/fixtures");
const absent = !existsSync(FIXTURES);
const NEVER = new AbortController().signal;
const HOST = "mx.example.org";

// biome-ignore lint/suspicious/noExplicitAny: the suites are YAML of various shapes.
type Yaml = any;

function read(path: string): Yaml[] {
  if (absent) return [];
  const parsed = Bun.YAML.parse(readFileSync(join(FIXTURES, path), "utf8"));
  return Array.isArray(parsed) ? parsed : [parsed];
}

function dnsError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/**
 * A zone of the SPF suite as a resolver: `TIMEOUT` fails every name not listed before it, and SPF records replace
 * TXT ones.
 */
function spfZone(zonedata: Yaml): AuthResolver {
  const zone = new Map<string, Yaml[]>(
    Object.entries<Yaml[]>(zonedata).map(([name, rows]) => [name.toLowerCase(), rows]),
  );
  return async (name, type) => {
    if (name.split(".").some((label) => label === "" || label.length > 63)) throw dnsError("EBADNAME");
    const rows = zone.get(name.toLowerCase());
    if (rows === undefined) throw dnsError("ENOTFOUND");
    const wanted = rows.flatMap((row: Yaml) => (typeof row === "object" && type in row ? [row[type]] : []));
    const spf = rows.flatMap((row: Yaml) => (typeof row === "object" && "SPF" in row ? [row.SPF] : []));
    const found =
      type === "TXT" && !rows.some((row: Yaml) => typeof row === "object" && "TXT" in row) ? spf : wanted;
    const shown = found.filter((value: Yaml) => value !== "NONE");
    if (shown.length === 0 && rows.includes("TIMEOUT")) throw dnsError("ETIMEOUT");
    if (shown.length === 0) throw dnsError("ENODATA");
    return shown.map((value: Yaml) => inNodesShape(type, value));
  };
}

function inNodesShape(type: string, value: Yaml): unknown {
  if (type === "TXT") return (Array.isArray(value) ? value : [value]).map((text: Yaml) => String(text));
  if (type === "MX") return { priority: value[0], exchange: value[1] };
  return value;
}

/** A fresh memory for each case, because many cases reuse the same names with other data. */
const memory = new CheckMemory();

/** Checks a message with a memory filled by other messages and zones, which must not change the result. */
async function authenticated(
  resolve: AuthResolver,
  envelope: AuthEnvelope,
  raw: Buffer,
): Promise<Authentication> {
  const found = await authenticate({ resolve, host: HOST }, envelope, raw, NEVER);
  for (const time of ["after others", "again"]) {
    const remembered = await authenticate({ resolve, host: HOST, memory }, envelope, raw, NEVER);
    expect({ time, ...remembered }).toEqual({ time, ...found });
  }
  return found;
}

describe.skipIf(absent)("the SPF suite of RFC 7208", () => {
  const scenarios = read("spf/rfc7208-tests.yml");
  const cases = scenarios.flatMap(({ tests, zonedata }) =>
    Object.entries<Yaml>(tests).map(([name, row]) => ({ name, row, zonedata })),
  );
  test("the SPF suite of RFC 7208 has its expected number of cases", () => expect(cases.length).toBe(200));
  // No case is excepted.
  test.each(cases)("$name", async ({ row, zonedata }) => {
    const envelope = { ip: row.host, helo: String(row.helo ?? ""), mailFrom: String(row.mailfrom ?? "") };
    const raw = Buffer.from("From: a@none.invalid\r\n\r\nx\r\n");
    const { verdict } = await authenticated(spfZone(zonedata), envelope, raw);
    expect([row.result].flat()).toContain(verdict.spf.result);
  });
});

/** Cases of the ARC suite where our result differs, with the reason. */
const ARC_DIFFERENCES: Readonly<Record<string, string>> = {
  cv_fail_i1_as_cv_fail:
    "the suite names no status; RFC 8617 §5.2 step 2: a newest seal with cv=fail is fail",
  cv_fail_i2_as2_fail: "the same, on the second seal",
  cv_fail_i2_as1_fail:
    "the suite names no status; RFC 8617 §5.2 step 3: a first seal without cv=none is fail",
  ams_fields_h_empty: "RFC 6376 §3.5: h= must not be empty, and the signature would not cover From",
};

describe.skipIf(absent)("the validation suite of ARC", () => {
  const scenarios = read("arc/arc-draft-validation-tests.yml");
  const cases = scenarios.flatMap(({ tests, "txt-records": dashed, txt_records: records = dashed }) =>
    Object.entries<Yaml>(tests).map(([name, row]) => ({ name, row, records })),
  );
  test("the validation suite of ARC has its expected number of cases", () => expect(cases.length).toBe(171));
  test.each(cases)("$name", async ({ name, row, records }) => {
    const resolve: AuthResolver = async (host, type) => {
      const text = type === "TXT" ? records?.[host] : undefined;
      if (text === undefined) throw dnsError("ENOTFOUND");
      return [[String(text)]];
    };
    const raw = Buffer.from(String(row.message ?? "").replace(/\r?\n/g, "\r\n"), "utf8");
    const envelope = { ip: "192.0.2.1", helo: "h.example", mailFrom: "" };
    const { verdict } = await authenticated(resolve, envelope, raw);
    const expected = String(row.cv === "" || row.cv === null ? "none" : row.cv).toLowerCase();
    if (name in ARC_DIFFERENCES) expect(verdict.arc.result).not.toBe(expected);
    else expect(verdict.arc.result).toBe(expected);
  });
});
