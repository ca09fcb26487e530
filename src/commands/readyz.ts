import { isObject } from "../core/validation.ts";
import { hostPort } from "../core/networks.ts";
import { defineCommand } from "./support/command.ts";
import { exchangeDirect } from "./support/direct-fetch.ts";
import { EX_NO, EX_OK, usage } from "./support/exit.ts";
import { localAddress } from "./support/local-service.ts";

/**
 * Time for the service to answer, seconds. Its own checks may take up to five seconds, but a service that slow is
 * hardly ready.
 */
const DEFAULT_TIMEOUT_SECONDS = 3;
const MAX_TIMEOUT_SECONDS = 60;
/** Maximum number of bytes read of the answer, which names the failed checks. */
const MAX_ANSWER_BYTES = 4096;

/** Asks the service on this machine whether it is ready. */
export const readyz = defineCommand({
  name: "readyz",
  flags: {
    timeout: {
      type: "string",
      value: "SECONDS",
      help: `seconds to wait for the answer (default ${DEFAULT_TIMEOUT_SECONDS})`,
    },
  },
  about: `Asks /readyz of the service at HOST and PORT. Exits 0 if it is ready, and 1 if it is not or does not answer.
Use it as a health check in containers without curl.`,
  example: "postrider readyz --timeout 5",
  async run({ flags }, { config, clock, out }) {
    const timeoutMs = secondsOf(flags.timeout) * 1000;
    const { host, port } = localAddress(config);
    const url = new URL(`http://${hostPort(host, port)}/readyz`);
    const outcome = await exchangeDirect(clock, url, { timeoutMs, maxBytes: MAX_ANSWER_BYTES });
    if (outcome.kind === "failed") {
      out.record({ ready: false, reason: outcome.reason }, `not ready: ${outcome.reason}`);
      return EX_NO;
    }
    const { status, body } = outcome;
    const ready = status === 200;
    const checks = checksOf(body.toString("utf8"));
    const failed = Object.keys(checks).filter((name) => checks[name] !== "ok");
    out.record(
      { ready, status, checks },
      ready ? "ready" : `not ready: ${failed.join(", ") || `status ${status}`}`,
    );
    return ready ? EX_OK : EX_NO;
  },
});

function secondsOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_TIMEOUT_SECONDS;
  const seconds = /^\d{1,2}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds > 0 && seconds <= MAX_TIMEOUT_SECONDS))
    throw usage(`--timeout must be a number of seconds up to ${MAX_TIMEOUT_SECONDS}`);
  return seconds;
}

function checksOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && isObject(body.checks) ? body.checks : {};
  } catch {
    return {};
  }
}
