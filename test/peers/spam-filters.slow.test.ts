import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { MOST, MOST_CHOSEN } from "../support/scored-kinds.ts";
import { FILTERS, highRules, MOST_POINTS, scoredKinds, sumOf } from "../support/scored-mail.ts";
import { newFolder, removeFolder } from "../support/folder.ts";

/** Milliseconds: eight seconds on an idle machine. */
setDefaultTimeout(120_000);
const areThere = FILTERS.every((program) => Bun.which(program) !== null);

describe.skipIf(!areThere)("SpamAssassin and rspamd, with Debian's rules", () => {
  test(`apply no rule of more than ${MOST_POINTS} points that is ours, and give no kind of message more than docs/inbox.md says`, async () => {
    const folder = newFolder("filters");
    const scored = await scoredKinds(folder);
    removeFolder(folder);
    const faults = scored.flatMap((one) => {
      const { name, chosen } = one.kind;
      const most = chosen === undefined ? MOST : MOST_CHOSEN;
      const over = (["assassin", "rspamd"] as const)
        .filter((filter) => sumOf(one[filter]) > most[filter])
        .map((filter) => `${filter} gives ${sumOf(one[filter]).toFixed(1)}`);
      return [...highRules(one).ours, ...over].map((fault) => `${name}: ${fault}`);
    });
    expect([scored.length, faults]).toEqual([31, []]);
  });
});
