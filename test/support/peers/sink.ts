import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "./peer.ts";

const SMTP_SINK = "/usr/sbin/smtp-sink";

/** Why smtp-sink cannot run here, or null if it can. */
export const SINK_MISSING = existsSync(SMTP_SINK) ? null : "smtp-sink is not installed";

/** Postfix's sink: accepts all mail, or fails as its switches say. */
export interface Sink {
  /** Recipients of the complete transactions, one entry for each RCPT TO. */
  taken(): string[];
  stop(): Promise<void>;
}

/** Starts a sink at a free address. Messages go into files of the folder. */
export async function startSink(
  address: { ip: string; port: number },
  switches: readonly string[],
  folder: string,
): Promise<Sink> {
  const { ip, port } = address;
  // If root starts the sink, it requires the name of a user to run as.
  const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
  const child = Bun.spawn(
    [SMTP_SINK, ...user, ...switches, "-d", join(folder, "mail."), `${ip}:${port}`, "100"],
    { stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  );
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  if (!(await answers(ip, port, child))) throw new Error(`smtp-sink ${switches.join(" ")} does not start`);
  return {
    taken: () =>
      readdirSync(folder).flatMap((name) => {
        const dump = readFileSync(join(folder, name), "latin1");
        const recipient = /^X-Rcpt-Args: <([^>]+)>/m.exec(dump)?.[1];
        return recipient === undefined || !dump.includes("Message-I") ? [] : [recipient];
      }),
    async stop() {
      kill();
      await child.exited;
      process.off("exit", kill);
    },
  };
}
