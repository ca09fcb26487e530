import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism, getPriority } from "node:os";
import { POOL_NICE } from "../../src/wiring/cpu/priority.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { type Env, program } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

/** The priorities of a process's threads of that name. */
function priorities(pid: number, name: string): number[] {
  const tasks = `/proc/${pid}/task`;
  return readdirSync(tasks)
    .filter((id) => readFileSync(`${tasks}/${id}/comm`, "latin1").startsWith(name))
    .map((id) => getPriority(Number(id)));
}

/** Runs a service of these roles and ends it once the condition holds for its process. */
async function serves(env: Env, holds: (pid: number) => boolean): Promise<number> {
  let looking: Promise<void> | null = null;
  const own = {
    DATA_DIR: newFolder("command"),
    HOST: "127.0.0.1",
    PORT: "0",
    SMTP_PORT: "0",
    DELIVERY: "capture",
  };
  const ran = await program(
    ["serve"],
    { ...own, ...env },
    {
      onError(stderr, child) {
        if (!stderr.includes('"started"')) return;
        looking ??= until(() => holds(child.pid)).finally(() => child.kill());
      },
    },
  );
  await looking;
  return ran.code;
}

test.skipIf(availableParallelism() < 2)(
  "the threads that sign mail have a lower priority than the event loop, and no other thread has",
  async () => {
    const code = await serves({ ROLES: "worker,api" }, (pid) => {
      const pool = priorities(pid, "Bun Pool");
      return (
        pool.length > 1 && pool.every((nice) => nice === POOL_NICE) && getPriority(pid) === getPriority()
      );
    });
    expect(code).toBe(0);
  },
);
