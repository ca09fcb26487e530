import { version } from "../../package.json";
import { keepAlive } from "../clock.ts";
import type { Clock } from "../core/clock.ts";
import { configureLog, log } from "../log.ts";
import { bannerText, secretsText } from "../wiring/banner.ts";
import { poolBehindEventLoop } from "../wiring/threads/priority.ts";
import { defineCommand } from "./command.ts";
import { EX_OK, EX_SOFTWARE } from "./exit.ts";
import { explained, unknownHost } from "./trouble.ts";

/** Time that a start has to come to its end once it is told to stop; with it, a first start tells the keys that it has made. */
const START_GRACE_MS = 5000;

/** Starts the service; it runs until SIGTERM or SIGINT. */
export const serve = defineCommand({
  name: "serve",
  flags: {},
  plain: true,
  about: `Starts the roles that ROLES names: API, SMTP listener, workers. The database is brought up to date first. The first
start prints the keys it has made, once. SIGTERM finishes what is in hand within 20 seconds; SIGHUP reads the
certificate anew.`,
  example: "PORT=8080 SERVICE_DOMAIN=mail.example.com postrider serve",
  async run(_input, { config, clock, out }) {
    await configureLog(config.logLevel, config.logFormat);
    for (const name of config.givenTwice)
      log("app").warn("a setting is given twice", { used: name, unread: `${name}_FILE` });
    // From the first moment: what renews certificates does not wait for a start, and nobody's SIGHUP would end it.
    let reload: (() => void) | null = null;
    let asked = false;
    process.on("SIGHUP", () => {
      asked = true;
      reload?.();
    });
    const stopSignals = hearStopSignals(clock);
    // Read behind that: reading it is most of the time until then.
    const { FirstStartError, startApp } = await import("../app.ts");
    const app = await startApp(config, clock).catch(async (error: unknown) => {
      const first = error instanceof FirstStartError;
      if (first) out.plain(secretsText(error.firstStart));
      const cause = first ? error.cause : error;
      return explained(cause, config, await unknownHost(cause, config));
    });
    const stop = (): void => {
      // With the doors closed nothing else may hold the process, and it would end before its last writes are done.
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
          log("app").info(read ? "certificate read anew" : "no certificate is configured, nothing to read"),
        (error: unknown) => log("app").error("the old certificate stays", { error: String(error) }),
      );
    };
    if (asked) reload();
    const { roles, delivery } = config;
    if (roles.has("worker")) void poolBehindEventLoop();
    log("app").info("started", { version, roles: [...roles], delivery, ports: app.ports });
    // Last: whoever has read that it runs may end it, and that is heard by now.
    out.plain(bannerText(config, app));
    return EX_OK;
  },
});

/**
 * Hears SIGTERM and SIGINT from now on. As the first process of a container nobody else would: there the kernel drops a
 * signal that has no handler. A start that is told to stop goes on to its end, since nobody knows from without whether it
 * has made the first keys; one that takes longer is left as it is, which loses nothing.
 */
function hearStopSignals(clock: Clock): { started(stop: () => void): boolean } {
  let stop: (() => void) | null = null;
  let giveUp: (() => void) | null = null;
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      log("app").info("stopping", { signal });
      if (stop !== null) stop();
      else giveUp ??= clock.after(START_GRACE_MS, () => process.exit(EX_OK));
    });
  return {
    /** Says how to stop from now on, and stops at once where a signal has come; tells whether one has. */
    started(how) {
      stop = how;
      if (giveUp === null) return false;
      giveUp();
      stop();
      return true;
    },
  };
}
