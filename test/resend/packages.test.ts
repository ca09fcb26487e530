import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { newFolder, removeFolder } from "../support/folder.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

const CALLS = join(import.meta.dir, "packages");

/** Python that has Resend's package: `RESEND_PYTHON`, or the system's. Null if there is none. */
const PYTHON = [Bun.env.RESEND_PYTHON, "python3"].find((python) =>
  isRun([python ?? "", "-c", "import resend"]),
);
/** The module cache that has Resend's package for Go, as `GOPATH`: `RESEND_GOPATH`. It is never filled by a test. */
const GOPATH = Bun.env.RESEND_GOPATH;
const GO = GOPATH !== undefined && isRun(["go", "version"]);

function isRun(command: string[]): boolean {
  try {
    return Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).exitCode === 0;
  } catch {
    return false;
  }
}

let service: TestService;
let env: Record<string, string>;
beforeAll(async () => {
  service = await startService();
  await verifiedDomain(service, "shop.test");
  await receivingInboxes(service, "in.test", ["support@in.test"]);
  const inbound = await service.call("POST", "/v1/inbound/simulate", {
    to: "support@in.test",
    from: "ana@example.com",
    subject: "Help",
    text: "See file",
    attachments: [{ filename: "log.txt", content: btoa("oops") }],
  });
  env = {
    ...(Bun.env as Record<string, string>),
    RESEND_API_KEY: service.projectKey,
    RESEND_API_URL: `${service.url}/resend`,
    RESEND_BASE_URL: `${service.url}/resend/`,
    SENDER: "Shop <hello@shop.test>",
    INBOUND: inbound.body.messageId,
  };
});
afterAll(() => service.stop());

/** Runs a program that prints what became of its calls. Returns those that failed. */
async function faultsOf(command: string[], options: { cwd: string; env?: Record<string, string> }) {
  const child = Bun.spawn(command, { ...options, env: { ...env, ...options.env }, stderr: "pipe" });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) !== 0) throw new Error(err);
  const results: [call: string, fault: string | null][] = JSON.parse(out);
  return { calls: results.length, faults: results.filter(([, fault]) => fault !== null) };
}

describe("Resend's package", () => {
  test.skipIf(PYTHON === undefined)(
    "for Python does all that is supported (RESEND_PYTHON names a Python that has it)",
    async () => {
      const { calls, faults } = await faultsOf([PYTHON ?? "", join(CALLS, "calls.py")], { cwd: CALLS });
      expect(faults).toEqual([]);
      expect(calls).toBe(59);
    },
  );

  test.skipIf(!GO)(
    "for Go does all that is supported (RESEND_GOPATH names a module cache that has it)",
    async () => {
      const cwd = newFolder("resend-go");
      try {
        await cp(join(CALLS, "go"), cwd, { recursive: true });
        const offline = { GOPROXY: "off", GOSUMDB: "off", GOFLAGS: "-mod=mod" };
        const { calls, faults } = await faultsOf(["go", "run", "."], {
          cwd,
          env: { ...offline, GOPATH: GOPATH ?? "" },
        });
        expect(faults).toEqual([]);
        expect(calls).toBe(29);
      } finally {
        removeFolder(cwd);
      }
    },
  );
});
