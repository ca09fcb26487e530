import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { AppError, type Issue } from "./errors.ts";

/** Issues told of one request at most: a hostile body must not make a long answer. */
export const MAX_ISSUES = 50;

/** `/to/0/email` as `to[0].email`. */
function paramOf(pointer: string): string {
  let out = "";
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) out += `[${name}]`;
    else out += out === "" ? name : `.${name}`;
  }
  return out;
}

/** A schema's breaches as issues, one a place, at most `MAX_ISSUES`. */
function issuesOf(errors: Iterable<Pick<ValueError, "path" | "message" | "type">>): Issue[] {
  const issues = new Map<string, Issue>();
  for (const error of errors) {
    const param = paramOf(error.path);
    if (issues.has(param)) continue;
    if (issues.size >= MAX_ISSUES) break;
    const missing = error.type === ValueErrorType.ObjectRequiredProperty;
    issues.set(param, {
      message: missing ? "Required." : error.message,
      param,
      ...(missing ? { code: "missing_field" as const } : {}),
    });
  }
  return [...issues.values()];
}

/** 422 over all issues; the first one gives the message, `param` and `code`. */
export function validationError(issues: Issue[]): AppError {
  const first = issues[0] ?? { message: "Invalid.", param: "" };
  const where = first.param === "" ? "body" : first.param;
  return new AppError("validation_error", `${where}: ${first.message}`, {
    param: first.param,
    issues,
    ...(first.code ? { code: first.code } : {}),
  });
}

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** Issues of a value against a schema, whose checker is compiled at its first use; empty where it fits. */
export function check(schema: TSchema, value: unknown): Issue[] {
  let checker = compiled.get(schema);
  if (checker === undefined) {
    checker = TypeCompiler.Compile(schema);
    compiled.set(schema, checker);
  }
  return checker.Check(value) ? [] : issuesOf(checker.Errors(value));
}

/** Whether objects and lists lie in one another more than `depth` deep, the value itself counted. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeper(item, depth - 1));
}
