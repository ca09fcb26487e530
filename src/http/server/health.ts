import { Type } from "@sinclair/typebox";
import { type Clock, inTime } from "../../core/time/clock.ts";
import type { FreeSpace } from "../../flows/free-space.ts";
import { log } from "../../log.ts";
import { type Answer, ok } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";

/** Something that this process needs for its work. `run` throws if it is not available. */
export interface ReadyCheck {
  name: string;
  /** True if the process takes mail into its custody without it, as without Redis. Then it is `down`, and `/readyz` stays 200. */
  spare?: boolean;
  run(): Promise<void>;
}

/** Time for one check, milliseconds. A check that hangs has failed. */
const CHECK_TIMEOUT_MS = 5000;

const Live = Type.Object({ status: Type.Literal("ok") });
const Ready = Type.Object({
  status: Type.Union([Type.Literal("ok"), Type.Literal("unavailable")]),
  checks: Type.Record(
    Type.String(),
    Type.Union([Type.Literal("ok"), Type.Literal("failed"), Type.Literal("down"), Type.Literal("low")]),
    {
      description:
        "`redis` is there if one is set. While it is `down`, mail is taken and delivered later, so the process stays ready. `disk` is there, and `low`, while new mail and content are refused; the process stays ready for all else.",
    },
  ),
});

type Outcome = "ok" | "failed" | "down";

async function outcome(clock: Clock, { name, spare, run }: ReadyCheck): Promise<[string, Outcome]> {
  try {
    await inTime(clock, CHECK_TIMEOUT_MS, run(), "no answer in time");
    return [name, "ok"];
  } catch (error) {
    log("http").warn("not ready", { check: name, error: String(error) });
    return [name, spare === true ? "down" : "failed"];
  }
}

/** Returns the result of each check by name. Never rejects, and takes no longer than one check may. */
export async function runChecks(
  clock: Clock,
  checks: readonly ReadyCheck[],
): Promise<Record<string, Outcome>> {
  return Object.fromEntries(await Promise.all(checks.map((check) => outcome(clock, check))));
}

async function ready(clock: Clock, checks: readonly ReadyCheck[], space: FreeSpace): Promise<Answer> {
  const outcomes = await runChecks(clock, checks);
  const fine = Object.values(outcomes).every((result) => result !== "failed");
  const disk = space.low() ? { disk: "low" } : {};
  const body = { status: fine ? "ok" : "unavailable", checks: { ...outcomes, ...disk } };
  return { status: fine ? 200 : 503, body };
}

/**
 * Returns `/livez` and `/healthz`, which show that the process answers, and `/readyz`. If a check fails, `/readyz`
 * answers 503 with its name.
 */
export function probeRoutes(clock: Clock, checks: readonly ReadyCheck[], space: FreeSpace): Route[] {
  const alive = (path: string, operationId: string) =>
    openRoute({
      method: "GET",
      path,
      operationId,
      summary: "Check whether the process is alive",
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
      summary: "Check whether the process is ready for work",
      answers: { 200: Ready, 503: Ready },
      handle: () => ready(clock, checks, space),
    }),
  ];
}
