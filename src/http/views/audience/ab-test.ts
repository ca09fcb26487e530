import { type Static, Type } from "@sinclair/typebox";
import {
  AB_DEFAULTS,
  AB_MEASURES,
  type AbTest,
  compareVariants,
  MAX_AB_WAIT_MINUTES,
  measured,
  MIN_AB_SHARE,
  reasonOf,
  type Variant,
  VARIANTS,
  winnerOf,
} from "../../../core/audience/ab-test.ts";
import type { Rate } from "../../../core/audience/rates.ts";
import { MAX_SUBJECT_CHARS } from "../../../core/messages/send-item.ts";
import { reachedBy } from "../../../store/audience/broadcast-figures.ts";
import type { VariantFigures } from "../../../store/audience/broadcast-variants.ts";
import type { Broadcast } from "../../../store/audience/broadcasts.ts";
import { Nullable, OneOf, showTime, Timestamp, WITHOUT_NUL } from "../../routing/schemas.ts";

const FIELDS = {
  subject: Type.String({
    minLength: 1,
    maxLength: MAX_SUBJECT_CHARS,
    ...WITHOUT_NUL,
    description: "Subject B, in Liquid too. Subject A is that of the broadcast.",
    examples: ["Your news of May"],
  }),
  share: Type.Number({
    minimum: MIN_AB_SHARE,
    maximum: 1,
    description: `Share of the contacts that get the test, chosen by chance: half of them get A, half B. With 1, all get the test, and nothing is decided. Default: ${AB_DEFAULTS.share}.`,
    examples: [AB_DEFAULTS.share],
  }),
  waitMinutes: Type.Integer({
    minimum: 1,
    maximum: MAX_AB_WAIT_MINUTES,
    description: `Minutes from the last message of the test to the decision. Default: ${AB_DEFAULTS.waitMinutes}.`,
    examples: [AB_DEFAULTS.waitMinutes],
  }),
  by: OneOf(
    AB_MEASURES,
    `What decides: the share of the delivered messages that people opened, or clicked. Default: \`${AB_DEFAULTS.by}\`.`,
  ),
};

/** A test of two subjects as a client gives it. */
export const GivenAbTest = Type.Object(
  {
    subject: FIELDS.subject,
    share: Type.Optional(FIELDS.share),
    waitMinutes: Type.Optional(FIELDS.waitMinutes),
    by: Type.Optional(FIELDS.by),
  },
  {
    title: "NewBroadcastTest",
    description: "Tests a second subject. If absent or null: all get the same subject.",
  },
);

const DecisionView = Type.Object(
  {
    winner: OneOf(
      [...VARIANTS, "undecided"],
      "The subject that the other contacts get. If `undecided`, they get A.",
    ),
    why: Type.String({
      examples: [
        "A was opened by 24.0 % ± 2.0, B by 31.0 % ± 2.1. The difference is beyond the margin of error (95 %).",
      ],
    }),
    at: Timestamp,
  },
  { title: "BroadcastDecision" },
);

/** A test of two subjects with its state. */
export const AbTestView = Type.Object(
  { ...FIELDS, decideAt: Nullable(Timestamp), decision: Nullable(DecisionView) },
  {
    title: "BroadcastTest",
    description:
      "A test of two subjects. `decideAt` is known once the last message of the test was tried. The better subject then goes to the other contacts if the difference is beyond the margin of error.",
  },
);

/** Returns a test in the form of `AbTestView`. */
export function showTest({ decision, decideAt, ...test }: AbTest): Static<typeof AbTestView> {
  const shown = decision && {
    winner: decision.winner ?? ("undecided" as const),
    why: reasonOf(test.by, decision.figures),
    at: showTime(decision.at),
  };
  return { ...test, decideAt: showTime(decideAt), decision: shown };
}

const Part = (description: string) => Nullable(Type.Number({ description, examples: [0.29] }));
const RateView = Type.Object(
  {
    count: Type.Integer({ description: "Recipients, without machines." }),
    rate: Part("Of the messages delivered. Null, as are the others: nothing to divide by."),
    low: Part("Lower limit of the 95 % interval by Wilson's score."),
    high: Part("Upper limit."),
    margin: Part("Margin of error: the greater distance of both limits from the rate."),
  },
  { title: "RateWithMargin" },
);
const VariantView = Type.Object(
  {
    subject: Type.String({ examples: ["News of May"] }),
    recipients: Type.Integer({ description: "Messages made." }),
    delivered: Type.Integer(),
    opened: RateView,
    clicked: RateView,
    complained: Type.Integer(),
    unsubscribed: Type.Integer(),
  },
  { title: "BroadcastVariant" },
);

/** The results of a test of two subjects. */
export const TestResultsView = Type.Object(
  {
    a: VariantView,
    b: VariantView,
    better: Nullable(OneOf(VARIANTS, "Null: no clear difference so far.")),
    why: Type.String({ examples: ["No reader has opened a message of the test."] }),
    difference: Part("The rate of A minus that of B."),
    low: Part("Lower limit of its 95 % interval by Newcombe's hybrid score (method 10)."),
    high: Part("Upper limit. If 0 lies between both limits, there is no clear difference."),
  },
  {
    title: "BroadcastTestResults",
    description:
      "The messages of the test so far, on a scale from 0 to 1. `abTest.decision` of the broadcast says what was decided by the figures of that time.",
  },
);

/** Returns the results of a test in the form of `TestResultsView`. */
export function showTestResults(
  { subject }: Broadcast,
  { by, subject: other }: AbTest,
  figures: Readonly<Record<Variant, VariantFigures>>,
): Static<typeof TestResultsView> {
  const reached = { a: reachedBy(figures.a), b: reachedBy(figures.b) };
  const shown = (variant: Variant, own: string) => {
    const { recipients, complained, unsubscribed } = figures[variant];
    const [opened, clicked] = [measured("opens", reached[variant]), measured("clicks", reached[variant])];
    return {
      subject: own,
      recipients,
      delivered: reached[variant].arrived,
      opened: shownRate(opened),
      clicked: shownRate(clicked),
      complained,
      unsubscribed,
    };
  };
  const { difference, low, high } = compareVariants(by, reached);
  return {
    a: shown("a", subject ?? ""),
    b: shown("b", other),
    better: winnerOf(by, reached),
    why: reasonOf(by, reached),
    difference: rounded(difference),
    low: rounded(low),
    high: rounded(high),
  };
}

function shownRate({ count, rate, low, high, margin }: Rate): Static<typeof RateView> {
  return { count, rate: rounded(rate), low: rounded(low), high: rounded(high), margin: rounded(margin) };
}

/** Returns a rate with the digits that results have. */
export function rounded(rate: number | null): number | null {
  return rate === null ? null : Math.round(rate * 10_000) / 10_000;
}
