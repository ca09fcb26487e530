import { expect, test } from "bun:test";
import { type Actor, actingAs } from "../../../../src/core/actor.ts";
import { inActorsName } from "../../../../src/store/engine/acting.ts";
import type { Statement } from "../../../../src/store/sql/engine.ts";
import { judgeSender } from "../../../../src/store/projects/reputation.ts";

const NOW = 1_750_000_000_000;
const KEY: Actor = { type: "key", id: "key_1", name: "a key", ip: null, requestId: null };
const SERVICE: Actor = { type: "service", id: null, name: null, ip: null, requestId: null };
const LIMITS = { minSettled: 200, bouncedPerMille: 80, complainedPerMille: 3, minComplainants: 5 };

const judge = (seldom: boolean): Statement => judgeSender("snd_1", LIMITS, NOW, seldom);
const rollUp: Statement = { sql: "UPDATE messages SET status = ? WHERE id = ?", args: ["sent", "msg_1"] };
const count: Statement = { sql: "UPDATE usage SET recipients = 1", args: [] };

// Naming the actor takes two statements, which would cost outbound mail a hundredth if each outcome had them.
test.each<[text: string, statement: Statement, actor: Actor, named: boolean]>([
  ["an outcome that can only lower the rates does not name the service", judge(true), SERVICE, false],
  ["an outcome that may suspend a project names the service", judge(false), SERVICE, true],
  ["a status that delivery changes does not name the service", rollUp, SERVICE, false],
  ["a status that a request changes names its key", rollUp, KEY, true],
  ["a statement that seldom changes a row names the key of a request", judge(true), KEY, true],
  ["a count does not name the key of a request", count, KEY, false],
])("%s", (_, statement, actor, named) => {
  const written = actingAs(actor, () => inActorsName([statement], NOW));
  expect(written).toHaveLength(named ? 3 : 1);
  expect(written).toContain(statement);
});
