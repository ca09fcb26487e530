import { isIP } from "node:net";
import type { Config } from "../config.ts";
import { hostPort } from "../core/host-port.ts";
import { exchangeHttp } from "../net/http-exchange.ts";
import { defineCommand } from "./command.ts";
import { EX_NO, EX_OK, refused, usage } from "./exit.ts";

/** Time the service has to answer, seconds. Its own checks take up to five: then it is as good as not ready. */
const DEFAULT_TIMEOUT_SECONDS = 3;
const MAX_TIMEOUT_SECONDS = 60;

/** Asks the service on this machine whether it is ready. */
export const readyz = defineCommand({
  name: "readyz",
  flags: {
    timeout: {
      type: "string",
      value: "SECONDS",
      help: `time it has, ${DEFAULT_TIMEOUT_SECONDS} unless told`,
    },
  },
  about: `Asks /readyz of the service at HOST and PORT. Exits 0 when it is ready and 1 when it is not, or does not answer: a
health check for containers that have no curl.`,
  example: "postrider readyz --timeout 5",
  async run({ flags }, { config, clock, out }) {
    const timeoutMs = secondsOf(flags.timeout) * 1000;
    const { host, port } = addressOf(config);
    const octets = Buffer.from(
      `GET /readyz HTTP/1.1\r\nHost: ${hostPort(host, port)}\r\nConnection: close\r\n\r\n`,
    );
    // Not `fetch`: a proxy that the environment names (HTTP_PROXY) would be asked in the service's place.
    const request = { ip: host, port, tlsName: null, octets, timeoutMs, connectTimeoutMs: timeoutMs };
    const outcome = await exchangeHttp({ clock }, request);
    if (outcome.kind === "failed") {
      out.record({ ready: false, reason: outcome.reason }, `not ready: ${outcome.reason}`);
      return EX_NO;
    }
    const { status, body } = outcome.response;
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

const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Where the service listens, as seen from this machine. */
function addressOf({ host, port }: Config): { host: string; port: number } {
  if (port === 0) throw refused("PORT is 0: nobody knows which port the service has taken");
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return { host: isIP(bare) === 0 ? host : (WILDCARDS[bare] ?? bare), port };
}

function checksOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && isObject(body.checks) ? body.checks : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
