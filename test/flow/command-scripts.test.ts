import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { scripts } from "../../package.json";
import { newFolder } from "../support/folder.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const ROOT = join(import.meta.dir, "../..");

test.each(["dev", "start"] as const)(
  "npm sends SIGTERM to the shell of `npm run %s`, which has become the service, and it ends",
  async (name) => {
    const child = Bun.spawn(["sh", "-c", scripts[name]], {
      cwd: ROOT,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        PATH: Bun.env.PATH ?? "",
        DATA_DIR: newFolder("command"),
        LOG_FORMAT: "json",
        HOST: "127.0.0.1",
        PORT: "0",
        SMTP_HOST: "127.0.0.1",
        SMTP_PORT: "0",
      },
    });
    for await (const chunk of child.stdout) if (Buffer.from(chunk).includes("Postrider is running.")) break;
    child.kill("SIGTERM");
    // Standard error ends when the last process that has it ends.
    expect(await new Response(child.stderr).text()).toContain('"message":"stopping","signal":"SIGTERM"');
    expect(await child.exited).toBe(0);
  },
);
