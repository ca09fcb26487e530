import { fstatSync } from "node:fs";
import { keepAlive } from "../clock.ts";
import type { Clock } from "../core/time/clock.ts";
import { configureLog, log } from "../log.ts";
import { bannerText, secretsText } from "../wiring/process/banner.ts";
import { lowerPoolPriority } from "../wiring/cpu/priority.ts";
import { defineCommand } from "./support/command.ts";
import { EX_OK, EX_SOFTWARE } from "./support/exit.ts";
import { explained, unknownHost } from "./support/trouble.ts";
import { COMMIT, VERSION } from "../version.ts";

/** Time for a start to finish after a stop signal. A first start then still prints the keys that it has made. */
const START_GRACE_MS = 5000;

/** Starts the service, which runs until SIGTERM or SIGINT. */
export const serve = defineCommand({
  name: "serve",
  flags: {},
  plain: true,
  about: `Starts the roles in ROLES: API, SMTP listener, workers. First applies missing database migrations. The first
start prints the keys that it creates, only once. SIGTERM finishes running work within 20 seconds. SIGHUP
reloads the certificate.`,
  example: "PORT=8080 SERVICE_DOMAIN=mail.example.com postrider serve",
  async run(_input, { config, clock, out }) {
    await configureLog(config.logLevel, config.logFormat);
    for (const name of config.givenTwice)
      log("app").warn("a setting is given twice", { used: name, unread: `${name}_FILE` });
    for (const { name, setting } of config.unread)
      log("app").warn("no setting has the name of this variable", { variable: name, similar: setting });
    // SIGHUP is handled from the first moment. A tool that renews certificates may send it during the start, and
    // without a handler it would end the process.
    let reload: (() => void) | null = null;
    let asked = false;
    process.on("SIGHUP", () => {
      asked = true;
      reload?.();
    });
    const stopSignals = handleStopSignals(clock);
    if (config.testControls) stopWithParent();
    // Loaded after that, because loading takes most of the time until then.
    const { FirstStartError, startApp } = await import("../app.ts");
    const app = await startApp(config, clock).catch(async (error: unknown) => {
      const first = error instanceof FirstStartError;
      if (first) out.plain(secretsText(error.firstStart));
      const cause = first ? error.cause : error;
      return explained(cause, config, await unknownHost(cause, config));
    });
    const stop = (): void => {
      // With all ports closed, nothing else keeps the process alive, and it would end before its last writes are
      // done.
      keepAlive();
      app.stop().then(
        () => process.exit(EX_OK),
        (error: unknown) => {
          out.warn(String(error));
          process.exit(EX_SOFTWARE);
        },
      );
    };
    if (stopSignals.started(stop)) {
      if (app.firstStart !== null) out.plain(secretsText(app.firstStart));
      return EX_OK;
    }
    reload = () => {
      app.reload().then(
        (read) =>
          log("app").info(read ? "certificate reloaded" : "no certificate is configured, nothing to reload"),
        (error: unknown) => log("app").error("the old certificate stays in use", { error: String(error) }),
      );
    };
    if (asked) reload();
    const { roles, delivery } = config;
    if (roles.has("worker")) void lowerPoolPriority();
    log("app").info("started", {
      version: VERSION,
      commit: COMMIT,
      roles: [...roles],
      delivery,
      ports: app.ports,
    });
    // This is last. If a supervisor stops the service as soon as it reads this line, the signal is handled.
    out.plain(bannerText(config, app));
    return EX_OK;
  },
});

/** Stops the service when the program that started it has ended, which closes the pipe to our standard input. */
function stopWithParent(): void {
  const input = fstatSync(process.stdin.fd);
  if (!input.isFIFO() && !input.isSocket()) return;
  process.stdin.once("end", () => process.kill(process.pid, "SIGTERM")).resume();
}

/**
 * Handles SIGTERM and SIGINT from now on. If the process is the first of a container, the kernel drops signals
 * without a handler. If a stop comes during the start, the start finishes first, because it may have made the first
 * keys. If it takes longer than the limit, the process ends at once, and no data is lost.
 */
function handleStopSignals(clock: Clock): { started(stop: () => void): boolean } {
  let stop: (() => void) | null = null;
  let giveUp: (() => void) | null = null;
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      log("app").info("stopping", { signal });
      if (stop !== null) stop();
      else giveUp ??= clock.after(START_GRACE_MS, () => process.exit(EX_OK));
    });
  return {
    /**
     * Sets the function that stops the service. If a signal has already come, stops at once. Returns whether one
     * has.
     */
    started(how) {
      stop = how;
      if (giveUp === null) return false;
      giveUp();
      stop();
      return true;
    },
  };
}
