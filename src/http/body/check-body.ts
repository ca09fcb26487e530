import { type Issue, readAll, validationError } from "../../core/errors.ts";
import { check, MAX_ISSUES, withoutFaults } from "../../core/validation.ts";
import type { Route } from "../routing/route.ts";

/** Returns the body after checking it against the route's schema. Throws 422 if it does not fit. */
export function bodyOf(route: Route, body: unknown, now: number): unknown {
  if (route.body === undefined || route.bodyCheckedBy === "handler") return body;
  if (body === undefined && route.bodyOptional === true) return {};
  const issues = check(route.body, body);
  const refuse = () => {
    throw validationError(issues);
  };
  if (issues.length > 0) readAll(refuse, () => checkTheRest(route, body, issues, now));
  return body;
}

/** Checks the route's own rules for the fields that fit the schema. Throws 422. */
function checkTheRest({ rules }: Route, body: unknown, issues: readonly Issue[], now: number): void {
  const fields = issues.map(({ message, param }) => ({ message, param: /^[^.[]*/.exec(param)?.[0] ?? "" }));
  // Either the body is not an object, or the list of issues is full, so the shape of other fields is not known.
  if (rules === undefined || fields[0]?.param === "" || fields.length >= MAX_ISSUES) return;
  rules(withoutFaults(body as object, fields) as never, now);
}
