import { describe, expect, test } from "bun:test";
import { checkSpf, type SpfCheck } from "../../src/flows/domains/spf-check.ts";
import { type TestZone, zoneLookups } from "../support/api.ts";
import { manualClock } from "../support/manual-clock.ts";

const DOMAIN = "a.example.com";
const SERVICE = "post.example";
const OURS = "include:spf.post.example";
const IPS = ["192.0.2.10", "2001:db8::10"];

type Records = Readonly<Record<string, readonly string[] | "failure">>;

/** Names that records of the tests include. */
const OTHERS: Records = {
  "TXT other.example": ["v=spf1 ip4:203.0.113.1 -all"],
  "TXT nested.example": ["v=spf1 include:n1.example include:n2.example ~all"],
  ...Object.fromEntries(
    Array.from({ length: 11 }, (_, at) => [`TXT n${at + 1}.example`, ["v=spf1 ip4:203.0.113.2 -all"]]),
  ),
  "TXT deep.example": [`v=spf1 ${includes(10)} -all`],
  "TXT mine.example": [`v=spf1 ${OURS} ~all`],
  "TXT loop.example": [`v=spf1 ${"include:loop.example ".repeat(40)}-all`],
};

function includes(count: number): string {
  return Array.from({ length: count }, (_, at) => `include:n${at + 1}.example`).join(" ");
}

function check(
  records: readonly string[] | "failure",
  publicIps = IPS,
  more: Records = {},
): Promise<SpfCheck> {
  const zone: TestZone = new Map(Object.entries({ ...OTHERS, ...more, [`TXT ${DOMAIN}`]: records }));
  const deps = { clock: manualClock(), lookups: zoneLookups(zone), serviceDomain: SERVICE, publicIps };
  return checkSpf(deps, DOMAIN);
}

describe("an SPF record", () => {
  const rows: [string, readonly string[] | "failure", SpfCheck["state"], string][] = [
    ["ours", [`v=spf1 ${OURS} ~all`], "present", "pass"],
    ["ours among others", [`v=spf1 ip4:192.0.2.1 include:other.example ${OURS} -all`], "present", "pass"],
    ["ours in another case", ["V=SPF1 INCLUDE:SPF.POST.EXAMPLE ~ALL"], "present", "pass"],
    ["ours with a plus", [`v=spf1 +${OURS} -all`], "present", "pass"],
    ["ours with a final dot", [`v=spf1 ${OURS}. ~all`], "present", "pass"],
    ["ours without all", [`v=spf1 ${OURS}`], "present", "pass"],
    ["ours among other TXT records", ["site-verification=x", `v=spf1 ${OURS} ~all`], "present", "pass"],
    ["ours by the include of a name of the owner's", ["v=spf1 include:mine.example -all"], "present", "pass"],
    ["ours by a redirect", ["v=spf1 redirect=spf.post.example"], "present", "pass"],
    ["ours by a redirect to a name of the owner's", ["v=spf1 redirect=mine.example"], "present", "pass"],
    ["ours after ten lookups", [`v=spf1 ${includes(9)} ${OURS} -all`], "present", "pass"],
    ["ours after eleven includes", [`v=spf1 ${includes(11)} ${OURS} -all`], "absent", "permerror"],
    [
      "ours after eleven nested includes",
      [`v=spf1 include:deep.example ${OURS} -all`],
      "absent",
      "permerror",
    ],
    [
      "ours after three names without addresses",
      [`v=spf1 a:x.test a:y.test a:z.test ${OURS} -all`],
      "absent",
      "permerror",
    ],
    ["ours after an include of nothing", [`v=spf1 include:none.test ${OURS} -all`], "absent", "permerror"],
    ["ours with a wrong term", [`v=spf1 ipv4:192.0.2.1 ${OURS} ~all`], "absent", "permerror"],
    ["ours with a pass for everybody", [`v=spf1 ${OURS} +all`], "absent", "pass"],
    ["ours with all addresses", [`v=spf1 ${OURS} ip4:0.0.0.0/0 ~all`], "absent", "pass"],
    [
      "ours twice, which receivers refuse",
      [`v=spf1 ${OURS} ~all`, `v=spf1 ${OURS} ~all`],
      "absent",
      "permerror",
    ],
    ["ours and another", [`v=spf1 ${OURS} ~all`, "v=spf1 -all"], "absent", "permerror"],
    ["ours after `all`, never reached", [`v=spf1 -all ${OURS}`], "absent", "fail"],
    ["ours refused", [`v=spf1 -${OURS} ~all`], "absent", "fail"],
    ["a name that only begins the same", [`v=spf1 ${OURS}.evil.example ~all`], "absent", "permerror"],
    ["an empty name", ["v=spf1 include:. include: ~all"], "absent", "permerror"],
    ["one of our addresses of two", ["v=spf1 ip4:192.0.2.10 ~all"], "absent", "softfail"],
    ["another one", ["v=spf1 include:other.example ~all"], "absent", "softfail"],
    ["another version", [`v=spf10 ${OURS} ~all`], "absent", "none"],
    ["sender ID", [`spf2.0/pra ${OURS} ~all`], "absent", "none"],
    ["an include of itself", [`v=spf1 include:${DOMAIN} ${OURS} ~all`], "absent", "permerror"],
    [
      "an include of a name that does not answer",
      [`v=spf1 include:silent.test ${OURS} ~all`],
      "unknown",
      "temperror",
    ],
    ["no answer", "failure", "unknown", "temperror"],
  ];
  test.each(rows)("with %s", async (_name, records, state, result) => {
    const found = await check(records, IPS, { "TXT silent.test": "failure" });
    expect([found.state, found.result]).toEqual([state, result]);
  });

  test.each(rows.filter(([name]) => name !== "one of our addresses of two"))(
    "with %s is judged alike without PUBLIC_IPS",
    async (_name, records, state) => {
      expect((await check(records, [], { "TXT silent.test": "failure" })).state).toBe(state);
    },
  );
});

describe("the advice on an SPF record", () => {
  const rows: [string[], RegExp | null, string | null][] = [
    [[`v=spf1 ${OURS} ~all`], null, null],
    [[], /no SPF record/, `v=spf1 ${OURS} ~all`],
    [
      [`v=spf1 ${includes(9)} include:nested.example ${OURS} -all`],
      /more than 10 DNS lookups, .* include:nested\.example costs most: 3\./,
      `v=spf1 ${OURS} ${includes(9)} include:nested.example -all`,
    ],
    [
      [`v=spf1 a:x.test a:y.test a:z.test ${OURS} -all`],
      /More than two names/,
      `v=spf1 ${OURS} a:x.test a:y.test a:z.test -all`,
    ],
    [[`v=spf1 ipv4:192.0.2.1 ${OURS} ~all`], /cannot evaluate.*ipv4/, `v=spf1 ip4:192.0.2.1 ${OURS} ~all`],
    [[`v=spf1 ${OURS} +all`], /every host/, `v=spf1 ${OURS} ~all`],
    [[`"v=spf1 ${OURS} ~all"`], /quotation marks/, `v=spf1 ${OURS} ~all`],
    [[`\\"v=spf1 mx" " -all\\"`], /quotation marks/, `v=spf1 mx ${OURS} -all`],
    [["v=spf1 redirect=other.example"], /does not include/, `v=spf1 ${OURS} redirect=other.example`],
  ];
  test.each(rows)("%p", async (records, problem, fix) => {
    const found = await check(records);
    expect(found.fix).toBe(fix);
    if (problem === null) expect(found.problem).toBeNull();
    else expect(found.problem).toMatch(problem);
  });

  test("leads to a record that passes", async () => {
    for (const [records] of rows) {
      const { fix } = await check(records);
      if (fix !== null) expect([fix, (await check([fix])).state]).toEqual([fix, "present"]);
    }
  });

  test("the advice on an SPF record names a limit also if our mail passes before it", async () => {
    const found = await check([`v=spf1 ${OURS} ${includes(10)} -all`]);
    expect(found).toMatchObject({
      state: "present",
      result: "pass",
      problem: expect.stringContaining("more than 10"),
    });
  });

  test("the advice on an SPF record counts the lookups of a receiver that reads the record to its end, and the void ones", async () => {
    expect(await check([`v=spf1 ${OURS} a:x.test include:nested.example ~all`])).toMatchObject({
      state: "present",
      lookups: 5,
      voidLookups: 1,
      problem: null,
    });
  });

  test("the advice on an SPF record comes soon for a record whose includes multiply", async () => {
    const found = await check([`v=spf1 ${"include:loop.example ".repeat(40)}${OURS} -all`]);
    expect(found).toMatchObject({ state: "absent", problem: expect.stringContaining("costs most") });
  });
});
