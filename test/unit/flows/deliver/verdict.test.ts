import { describe, expect, test } from "bun:test";
import { type LaneNow, noFacts } from "../../../../src/flows/deliver/outcome.ts";
import { verdictOf } from "../../../../src/flows/deliver/verdict.ts";

const MINUTE_MS = 60_000;
const GIVE_UP_MS = 72 * 60 * MINUTE_MS;
const POLICY = { schedule: { delaysSeconds: [60, 300], jitter: 0 }, giveUpMs: GIVE_UP_MS };
const S3150 =
  "Unfortunately, messages from [192.0.2.9] weren't sent. Part of their network is on our block list (S3150).";

/** The verdict on a refusal. `ageMs`: time since the first attempt. */
function refused(code: number, enhanced: string | null, text: string, ageMs = 0, lane?: LaneNow) {
  const report = {
    ...noFacts(0),
    kind: "refused" as const,
    reply: { stage: "final", code, enhanced, text },
    ...(lane === undefined ? {} : { lane }),
  };
  return verdictOf(report, "delivered", POLICY, { attempt: 1, ageMs, random: 0 });
}

const lane = (state: LaneNow["state"], opensInMs = 0): LaneNow => ({
  name: "outlook",
  state,
  opensInMs,
  cause: state === "steady" ? null : "reputation",
  isDoubtful: false,
  changes: [],
});

describe("a refusal of our address by a lane that is", () => {
  test.each([
    ["steady", "failed"],
    ["resting", "failed"],
    ["blocked", "delivery_delayed"],
  ] as const)("%s is %s", (state, status) => {
    expect(refused(550, "5.7.1", S3150, 0, lane(state))).toMatchObject({ status, category: "reputation" });
  });
});

test("a blocked lane holds no message that is refused for another reason", () => {
  expect(refused(550, "5.1.1", "no such user", 0, lane("blocked"))).toMatchObject({ status: "bounced" });
});

test("a deferred message waits until its lane opens", () => {
  const verdict = refused(451, "4.3.0", "local error", 0, lane("resting", 40 * MINUTE_MS));
  expect(verdict.retryInMs).toBe(40 * MINUTE_MS);
});

test("a message waits for its lane until its give-up time and no longer", () => {
  const verdict = refused(451, "4.3.0", "x", GIVE_UP_MS - 10 * MINUTE_MS, lane("resting", 40 * MINUTE_MS));
  expect(verdict.retryInMs).toBe(10 * MINUTE_MS);
});

describe("a recipient that is given up after", () => {
  test.each([
    ["452 4.2.2 mailbox full", { status: "bounced", bounce: { type: "soft", category: "mailbox-full" } }],
    ["451 4.3.0 local error in processing", { status: "bounced", category: "infrastructure" }],
    [
      "421 4.7.0 [TSS04] Messages from 192.0.2.9 temporarily deferred due to user complaints",
      { status: "failed" },
    ],
    ["450 4.7.1 access denied by policy", { status: "failed", category: "policy" }],
  ])("%s does not become a bounce unless it is the recipient's or a host's trouble", (reply, expected) => {
    const [code = "", enhanced = "", ...words] = reply.split(" ");
    const verdict = refused(Number(code), enhanced, words.join(" "), GIVE_UP_MS);
    expect(verdict).toMatchObject({ ...expected, reason: "retries_exhausted", retryInMs: null });
  });

  test("any refusal in a blocked lane has failed", () => {
    expect(refused(451, "4.3.0", "local error", GIVE_UP_MS, lane("blocked"))).toMatchObject({
      status: "failed",
      bounce: null,
      reason: "retries_exhausted",
    });
  });
});
