import type { TSchema } from "@sinclair/typebox";
import { type Answer, isRaw, type Warning } from "../routing/answer.ts";
import { type UnknownField, unknownFields } from "../body/unknown-fields.ts";

type JsonObject = Record<string, unknown>;

/**
 * Returns a function that adds to an answer its own warnings and those of unknown fields in the body. If there are
 * none, the answer stays as it is. Equal bodies always get equal warnings, so a repeated request does too.
 */
export function warner(schema: TSchema | undefined, body: unknown): (answer: Answer) => Answer {
  let unknown: UnknownField[] | null = null;
  return ({ warnings: own = [], ...answer }) => {
    const shown = answer.body;
    if (answer.status >= 300 || typeof shown !== "object" || shown === null || isRaw(shown)) return answer;
    unknown ??= schema === undefined ? [] : unknownFields(schema, body);
    const fields = answer.status === 207 ? unknown.filter(({ param }) => !IN_ITEM.test(param)) : unknown;
    const results = answer.status === 207 ? withItemWarnings(shown as JsonObject, unknown) : shown;
    return { ...answer, body: withWarnings(results, [...own, ...fields.map(toWarning)]) };
  };
}

/** The path of a field in an item of a batch. */
const IN_ITEM = /^\w+\[(\d+)\]\.(.+)$/s;

/** Puts the warnings of each item of a batch into its result. */
function withItemWarnings(body: JsonObject, unknown: readonly UnknownField[]): JsonObject {
  const ofItem = new Map<number, Warning[]>();
  for (const { param, meant } of unknown) {
    const [, index, name = ""] = IN_ITEM.exec(param) ?? [];
    if (index === undefined) continue;
    const at = Number(index);
    ofItem.set(at, [...(ofItem.get(at) ?? []), toWarning({ param: name, meant })]);
  }
  if (ofItem.size === 0 || !Array.isArray(body.data)) return body;
  return { ...body, data: body.data.map((result, at) => withWarnings(result, ofItem.get(at) ?? [])) };
}

/** Returns a body, or the result of a batch item, with warnings in addition to its own. */
export function withWarnings(body: object, warnings: readonly Warning[]): JsonObject {
  const own = "warnings" in body ? (body.warnings as Warning[]) : [];
  return warnings.length === 0 ? { ...body } : { ...body, warnings: [...own, ...warnings] };
}

function toWarning({ param, meant }: UnknownField): Warning {
  return {
    param,
    message: `"${param}" is not a field, so it was ignored. Did you mean "${meant}"?`,
  };
}
