import { Type } from "@sinclair/typebox";
import { type Clock, inTime } from "../core/clock.ts";
import { log } from "../log.ts";
import { type Answer, ok } from "./answer.ts";
import { openRoute, type Route } from "./route.ts";

/** One thing this process needs to do its work. `run` throws where it is not to be had. */
export interface ReadyCheck {
  name: string;
  run(): Promise<void>;
}

/** Time a check has, milliseconds: what hangs is as little use as what fails. */
const CHECK_TIMEOUT_MS = 5000;

const Live = Type.Object({ status: Type.Literal("ok") });
const Ready = Type.Object({
  status: Type.Union([Type.Literal("ok"), Type.Literal("unavailable")]),
  checks: Type.Record(Type.String(), Type.Union([Type.Literal("ok"), Type.Literal("failed")])),
});

async function outcome(clock: Clock, { name, run }: ReadyCheck): Promise<[string, "ok" | "failed"]> {
  try {
    await inTime(clock, CHECK_TIMEOUT_MS, run(), "no answer in time");
    return [name, "ok"];
  } catch (error) {
    log("http").warn("not ready", { check: name, error: String(error) });
    return [name, "failed"];
  }
}

/** What becomes of each check, by name. Never rejects; takes no longer than a check has. */
export async function runChecks(
  clock: Clock,
  checks: readonly ReadyCheck[],
): Promise<Record<string, "ok" | "failed">> {
  return Object.fromEntries(await Promise.all(checks.map((check) => outcome(clock, check))));
}

async function ready(clock: Clock, checks: readonly ReadyCheck[]): Promise<Answer> {
  const outcomes = await runChecks(clock, checks);
  const fine = Object.values(outcomes).every((result) => result === "ok");
  const body = { status: fine ? "ok" : "unavailable", checks: outcomes };
  return { status: fine ? 200 : 503, body };
}

/** `/livez`, `/healthz`: the process answers. `/readyz`: all it needs does too, else 503 with what does not. */
export function probeRoutes(clock: Clock, checks: readonly ReadyCheck[]): Route[] {
  const alive = (path: string, operationId: string) =>
    openRoute({
      method: "GET",
      path,
      operationId,
      summary: "Whether the process answers",
      answers: { 200: Live },
      handle: () => ok({ status: "ok" }),
    });
  return [
    alive("/livez", "livez"),
    alive("/healthz", "healthz"),
    openRoute({
      method: "GET",
      path: "/readyz",
      operationId: "readyz",
      summary: "Whether all that the process needs is there",
      answers: { 200: Ready, 503: Ready },
      handle: () => ready(clock, checks),
    }),
  ];
}
