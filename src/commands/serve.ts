import { version } from "../../package.json";
import { FirstStartError, startApp } from "../app.ts";
import { configureLog, log } from "../log.ts";
import { bannerText, secretsText } from "../wiring/banner.ts";
import { poolBehindEventLoop } from "../wiring/threads/priority.ts";
import { defineCommand } from "./command.ts";
import { EX_OK, EX_SOFTWARE } from "./exit.ts";
import { explained } from "./trouble.ts";

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
    // From the first moment: what renews certificates does not wait for a start, and nobody's SIGHUP would end it.
    let reload: (() => void) | null = null;
    let asked = false;
    process.on("SIGHUP", () => {
      asked = true;
      reload?.();
    });
    const app = await startApp(config, clock).catch((error: unknown) => {
      if (!(error instanceof FirstStartError)) return explained(error, config);
      out.plain(secretsText(error.firstStart));
      return explained(error.cause, config);
    });
    const stop = (signal: string): void => {
      log("app").info("stopping", { signal });
      app.stop().then(
        () => process.exit(EX_OK),
        (error: unknown) => {
          out.warn(String(error));
          process.exit(EX_SOFTWARE);
        },
      );
    };
    reload = () => {
      app.reload().then(
        (read) =>
          log("app").info(read ? "certificate read anew" : "no certificate is configured, nothing to read"),
        (error: unknown) => log("app").error("the old certificate stays", { error: String(error) }),
      );
    };
    if (asked) reload();
    process.on("SIGTERM", () => stop("SIGTERM"));
    process.on("SIGINT", () => stop("SIGINT"));
    const { roles, delivery } = config;
    if (roles.has("worker")) void poolBehindEventLoop();
    log("app").info("started", { version, roles: [...roles], delivery, ports: app.ports });
    // Last: whoever has read that it runs may end it, and that is heard by now.
    out.plain(bannerText(config, app));
    return EX_OK;
  },
});
