import { Type } from "@sinclair/typebox";
import { AppError } from "../../../core/errors.ts";
import { DAY_MS } from "../../../core/time/units.ts";
import { FAILING_STAGES } from "../../../flows/dispatch/test-controls.ts";
import { noContent, ok } from "../../routing/answer.ts";
import type { Parts } from "../../routing/parts.ts";
import { accountRoute, type Route } from "../../routing/route.ts";
import { OneOf, showTime, Timestamp } from "../../routing/schemas.ts";

/** Maximum number of days that one request sets the clock forward. */
const MAX_ADVANCE_DAYS = 366;
const MAX_TIMES = 1000;
const MAX_PATTERN_CHARACTERS = 500;

const Advance = Type.Object({
  ms: Type.Integer({
    minimum: 1,
    maximum: MAX_ADVANCE_DAYS * DAY_MS,
    description: "Milliseconds to set the clock forward.",
    examples: [3_600_000],
  }),
});

const Failure = Type.Object({
  to: Type.Optional(
    Type.String({
      maxLength: MAX_PATTERN_CHARACTERS,
      description: "Regular expression for the recipient's address. Default: every recipient.",
      examples: ["@example\\.com$"],
    }),
  ),
  stage: OneOf(FAILING_STAGES, "Stage of the SMTP conversation that the reply ends."),
  reply: Type.String({
    pattern: "^[45]\\d\\d( [45]\\.\\d{1,3}\\.\\d{1,3})? [ -~]{1,500}$",
    description: "The receiver's reply: code, enhanced code and text.",
    examples: ["451 4.7.1 try later"],
  }),
  times: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_TIMES,
      description: "Number of attempts that fail. Default: 1.",
    }),
  ),
});

/** Returns the routes by which tests steer the service. Only `TEST_CONTROLS=1` has them. */
export function testControlRoutes({ testControls }: Pick<Parts, "testControls">): Route[] {
  if (testControls === null) return [];
  const { clock, failures } = testControls;
  const rights = { scope: "senders:write", accountWide: true } as const;
  return [
    accountRoute({
      method: "POST",
      path: "/test/clock",
      operationId: "advanceClock",
      summary: "Set the clock forward",
      description: "Retries, scheduled messages and all else that is due by then happens now.",
      ...rights,
      body: Advance,
      answers: { 200: Type.Object({ now: Timestamp }) },
      handle({ body }) {
        clock.advance(body.ms);
        return ok({ now: showTime(clock.now()) });
      },
    }),
    accountRoute({
      method: "POST",
      path: "/test/failures",
      operationId: "failNext",
      summary: "Make the next deliveries fail",
      description: "The next attempts at matching recipients get the reply, instead of being captured.",
      ...rights,
      body: Failure,
      answers: { 204: null },
      handle({ body: { to = "", stage, reply, times = 1 } }) {
        const { code, enhanced, text } = partsOf(reply);
        failures.add({ concerns: matcherOf(to), stage, code, enhanced, text, times });
        return noContent();
      },
    }),
    accountRoute({
      method: "DELETE",
      path: "/test/failures",
      operationId: "clearFailures",
      summary: "Let all deliveries succeed again",
      description: "Forgets the failures that no attempt has met.",
      ...rights,
      answers: { 204: null },
      handle() {
        failures.clear();
        return noContent();
      },
    }),
  ];
}

function matcherOf(pattern: string): (address: string) => boolean {
  try {
    const expression = new RegExp(pattern, "i");
    return (address) => expression.test(address);
  } catch {
    throw new AppError("validation_error", '"to" must be a regular expression.', { param: "to" });
  }
}

/** Reads a reply that the schema has checked. */
function partsOf(reply: string): { code: number; enhanced: string | null; text: string } {
  const [, code = "", enhanced = null, text = ""] = /^(\d{3}) (?:(\d\.\d+\.\d+) )?(.*)$/.exec(reply) ?? [];
  return { code: Number(code), enhanced, text };
}
