import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sealMessage } from "mailauth/lib/arc";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import { type AuthResolver, boundedResolver, MAX_AUTH_LOOKUPS } from "../../src/mail/auth/resolver.ts";
import { authenticate } from "../../src/mail/auth/authenticate.ts";
import {
  MAX_BODY_HASHES,
  MAX_CHECKED_HEADER_OCTETS,
  MAX_SIGNATURE_OCTETS,
  MAX_SIGNATURES,
} from "../../src/mail/auth/checkable.ts";
import {
  type DkimKey,
  dkimPrivateKey,
  dkimRecord,
  generateDkimKey,
  signDkim,
} from "../../src/mail/auth/dkim.ts";
import { type PolicyAnswer, policyAnswer } from "../../src/mail/auth/policy-answer.ts";
import { type Inspector, MAX_OCTETS_WAITING, openInspector } from "../../src/wiring/cpu/inspector.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const SOURCE = join(import.meta.dir, "../../src/mail/auth/policy-answer.ts");
const POLICIES = ["reject", "quarantine", "none"] as const;
type Policy = (typeof POLICIES)[number];

const FORGER = { ip: "198.51.100.1", helo: "out.forger.test", mailFrom: "x@forger.test" };
const AUTHOR = { mailFrom: "ann@a.test" };
const NEVER = new AbortController().signal;
const HEADER = "From: ann@a.test\r\nSubject: Hi\r\n";
const MAIL = Buffer.from(`${HEADER}\r\nHello\r\n`);
let key: DkimKey;

beforeAll(async () => {
  key = await generateDkimKey();
});

/** The table's rows: a check that does not finish, the answer if the policy is `reject`, and that for other policies. */
const ROWS = [
  ...readFileSync(SOURCE, "utf8").matchAll(/^ \* \| ([^|]+?) +\| [^|]+\| (\w+) +\| (\w+) +\|$/gm),
].map(([, check = "", reject = "", others = ""]) => ({ check, reject, others }));

/** DNS with that policy of a.test, the key of each domain, and no other names. */
function zone(policy: Policy, names: Readonly<Record<string, string>> = {}): AuthResolver {
  const texts: Readonly<Record<string, string>> = { "_dmarc.a.test": `v=DMARC1; p=${policy}`, ...names };
  return async (name, type) => {
    const text = texts[name] ?? (name.startsWith("k._domainkey.") ? dkimRecord(key.publicKeyBase64) : null);
    if (text === null || type !== "TXT") throw Object.assign(new Error("none"), { code: "ENOTFOUND" });
    return [[text]];
  };
}

/** Ends the lookups that have one deadline, and then those of the author's domain. */
type Silence = (domain: string) => void;
type Ways = readonly ((resolve: AuthResolver, silence: Silence) => AuthResolver)[];

/** DNS that fails for one name, and DNS that does not answer for it before the deadline. */
function troubleAt(troubled: string): Ways {
  return [
    (resolve) => async (name, type) => {
      if (name === troubled) throw Object.assign(new Error("no"), { code: "ESERVFAIL" });
      return resolve(name, type);
    },
    (resolve, silence) => (name, type) => {
      if (name !== troubled) return resolve(name, type);
      setImmediate(() => silence(name));
      return new Promise(() => undefined);
    },
  ];
}

interface Case {
  raw?: Buffer;
  from?: Partial<typeof FORGER>;
  names?: Readonly<Record<string, string>>;
}

async function answersOf(policy: Policy, ways: Ways, { raw = MAIL, from, names }: Case) {
  const answers = ways.map(async (way) => {
    const [ended, last] = [new AbortController(), new AbortController()];
    const resolve = way(zone(policy, names), (name) => {
      ended.abort();
      if (name.endsWith("a.test")) last.abort();
    });
    const deps = { resolve, host: "mx.test" };
    const { verdict } = await authenticate(
      deps,
      Object.create(FORGER, Object.getOwnPropertyDescriptors(from ?? {})),
      raw,
      ended.signal,
      last.signal,
    );
    return policyAnswer(verdict.dmarc);
  });
  return Promise.all(answers);
}

const WHOLE: Ways = [(resolve) => resolve];

function signed(domain: string, raw = MAIL): Promise<Buffer> {
  return signDkim({ raw, domain, keys: [{ selector: "k", privateKey: dkimPrivateKey(key.privateKeyPem) }] });
}

function junkSignatures(count: number, tags: (nth: number) => string): string {
  return Array.from(
    { length: count },
    (_, nth) => `DKIM-Signature: v=1; a=rsa-sha256; d=a.test; s=k; h=from; bh=AA==; b=AA==; ${tags(nth)}\r\n`,
  ).join("");
}

async function signedWith(signature: (field: string) => string, raw = MAIL): Promise<Buffer> {
  const whole = (await signed("a.test", raw)).toString("latin1");
  const end = whole.length - raw.length;
  return Buffer.from(`${signature(whole.slice(0, end))}${whole.slice(end)}`, "latin1");
}

/** A message whose bytes cannot be read from there on, as if memory were short. */
function unreadable(raw: Buffer, from: number): Buffer {
  const octets = Buffer.from(raw);
  octets.subarray = (start = 0, end = octets.length) => {
    if (start >= from) throw new RangeError("Out of memory");
    return Buffer.prototype.subarray.call(octets, start, end);
  };
  return octets;
}

const open: Inspector[] = [];
afterAll(() => {
  for (const one of open) one.close();
});

function inspector(script: string): Inspector {
  const made = openInspector(
    { clock: systemClock, log: log("smtp") },
    {
      host: "mx.test",
      dnsServers: ["127.0.0.1:1"],
      cpus: 1,
      open: () => new Worker(new URL(script, import.meta.url).href, { ref: false }),
    },
  );
  open.push(made);
  return made;
}

const OBEDIENT = "../support/inspect-worker.ts";

/**
 * The answer to a message that an obedient thread gets. The door answers 451 if there is no inspection or an error.
 */
async function onCpu(text: string, by = inspector(OBEDIENT)): Promise<PolicyAnswer[]> {
  const found = await by
    .inspect({ kind: "mail", raw: Buffer.from(text), session: FORGER })
    .catch((error: unknown) => (error instanceof Error ? null : undefined));
  return [found === null ? "defer" : policyAnswer(found?.authentication.verdict.dmarc ?? NOTHING)];
}

const NOTHING = { result: "pass", policy: null, domain: null };

/** Answers to forged mail, by the check that does not finish. Each is that of one way in which it may not. */
const CASES: Readonly<Record<string, (policy: Policy) => Promise<PolicyAnswer[]>>> = {
  "the author's policy: DNS trouble or its deadline": (policy) =>
    answersOf(policy, troubleAt("_dmarc.a.test"), {}),
  "whether a subdomain exists that `np=` rejects": (policy) =>
    answersOf(policy, troubleAt("x.a.test"), {
      raw: Buffer.from("From: ann@x.a.test\r\n\r\nx\r\n"),
      names: { "_dmarc.a.test": `v=DMARC1; p=none; sp=none; np=${policy}` },
    }),
  "the policy of another reading of the author": (policy) =>
    answersOf(policy, troubleAt("_dmarc.a.test"), {
      raw: Buffer.from("From: ann@a(x).test\r\n\r\nx\r\n"),
    }),
  "SPF: DNS trouble or its deadline": (policy) => answersOf(policy, troubleAt("a.test"), { from: AUTHOR }),
  "an aligned key: DNS trouble or its deadline": async (policy) =>
    answersOf(policy, troubleAt("k._domainkey.a.test"), { raw: await signed("a.test") }),
  "a key that is not aligned: DNS trouble": async (policy) =>
    answersOf(policy, troubleAt("k._domainkey.b.test"), { raw: await signed("b.test") }),
  "an ARC seal: DNS trouble": async (policy) => {
    const seal = await sealMessage(MAIL, {
      signingDomain: "b.test",
      selector: "k",
      privateKey: key.privateKeyPem,
      authResults: "b.test; dmarc=pass",
      cv: "none",
    });
    return answersOf(policy, troubleAt("k._domainkey.b.test"), { raw: Buffer.concat([seal, MAIL]) });
  },
  "lookups beyond the limit of a mail": (policy) => {
    const spent: Ways[number] = (resolve) => {
      const bounded = boundedResolver(resolve, { signal: NEVER, last: NEVER, author: null });
      const asked = [
        "_dmarc.a.test",
        ...Array.from({ length: MAX_AUTH_LOOKUPS }, (_, nth) => `n${nth}.test`),
      ];
      for (const name of asked) bounded(name, "TXT").catch(() => undefined);
      return bounded;
    };
    return answersOf(policy, [spent], { from: AUTHOR, names: { "_dmarc.test": "none" } });
  },
  "signatures beyond a limit (number, size, hashes)": async (policy) => {
    const over: ((field: string) => string)[] = [
      (field) => junkSignatures(MAX_SIGNATURES, () => "") + field,
      (field) => field.replace(" d=", ` x-y=${"z".repeat(MAX_SIGNATURE_OCTETS)}; d=`),
      (field) => junkSignatures(MAX_BODY_HASHES, (nth) => `l=${nth}`) + field,
    ];
    const answers = over.map(async (way) => answersOf(policy, WHOLE, { raw: await signedWith(way) }));
    return (await Promise.all(answers)).flat();
  },
  "a signature over a header beyond the limits": async (policy) => {
    const long = `X-Long: ${"x".repeat(MAX_CHECKED_HEADER_OCTETS)}\r\n`;
    return answersOf(policy, WHOLE, {
      raw: await signed("a.test", Buffer.from(`${long}${HEADER}\r\nx\r\n`)),
    });
  },
  "a signature whose check throws (memory, a bug)": async (policy) => {
    const raw = await signed("a.test");
    return answersOf(policy, WHOLE, { raw: unreadable(raw, raw.length - "Hello\r\n".length) });
  },
  "SPF or a policy whose check throws": (policy) => {
    const from = {
      get mailFrom(): string {
        throw new Error("a bug");
      },
    };
    return answersOf(policy, WHOLE, { from });
  },
  "a signed mail that stalls or kills its thread twice": (policy) => {
    const signature = junkSignatures(1, () => "").replace("a.test", `${policy}.test`);
    return onCpu(`throw\r\n${signature}From: ann@${policy}.test\r\n\r\nx\r\n`);
  },
  "an unsigned mail that does so": (policy) => onCpu(`throw\r\nFrom: ann@${policy}.test\r\n\r\nx\r\n`),
  "a mail whose header alone does so, too": (policy) =>
    onCpu(`throw always\r\nFrom: ann@${policy}.test\r\n\r\nx\r\n`),
  "a thread that does not start": (policy) =>
    onCpu(`From: ann@${policy}.test\r\n\r\nx\r\n`, inspector("file:///nowhere/at-all.ts")),
  "reading, because too many messages wait": async (policy) => {
    const full = inspector(OBEDIENT);
    const raw = Buffer.alloc(40 * 1024 * 1024, "hold ");
    const waiting = Math.ceil(MAX_OCTETS_WAITING / raw.length);
    const held = Array.from({ length: 2 + waiting }, () =>
      full.inspect({ kind: "mail", raw, session: null }),
    );
    const answers = await onCpu(`From: ann@${policy}.test\r\n\r\nx\r\n`, full);
    full.close();
    await Promise.allSettled(held);
    return answers;
  },
};

test("each row of the table has a case", () => {
  expect(ROWS.map(({ check }) => check)).toEqual(Object.keys(CASES));
});

describe("a forged mail and a check that does not finish:", () => {
  test.each(ROWS)("$check", async ({ check, reject, others }) => {
    for (const policy of POLICIES) {
      const answers: string[] = (await CASES[check]?.(policy)) ?? [];
      const expected = policy === "reject" ? reject : others;
      expect({ policy, answers }).toEqual({ policy, answers: answers.map(() => expected) });
      expect(answers).not.toEqual([]);
    }
  });
});

test("a forged mail is refused if all checks finish and the policy is reject", async () => {
  for (const policy of POLICIES)
    expect(await answersOf(policy, WHOLE, {})).toEqual([policy === "reject" ? "refuse" : "take"]);
});

test("a result that the table does not name puts the mail off", () => {
  expect(policyAnswer({ result: "surprise", policy: "none", domain: null })).toBe("defer");
});
