import type { Rule } from "../../api/types.ts";

/** Returns the positions to change so that a rule moves to another place. Others keep theirs where they can. */
export function movedPositions(
  rules: readonly Pick<Rule, "id" | "position">[],
  from: number,
  to: number,
): { id: string; position: number }[] {
  let last = -1;
  const places = rules.map(({ position }) => {
    last = Math.max(position, last + 1);
    return last;
  });
  const moved = rules[from];
  const order = moved === undefined ? rules : rules.toSpliced(from, 1).toSpliced(to, 0, moved);
  return order.flatMap(({ id, position }, at) => {
    const place = places[at] ?? position;
    return place === position ? [] : [{ id, position: place }];
  });
}
