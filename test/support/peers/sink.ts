import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "./peer.ts";

const SMTP_SINK = "/usr/sbin/smtp-sink";

/** Why smtp-sink cannot run here; null where it can. */
export const SINK_MISSING = existsSync(SMTP_SINK) ? null : "smtp-sink is not installed";

/** Postfix's sink: takes all mail, or fails as its switches say. */
export interface Sink {
  /** Recipients of the transactions that it has had whole, each as often as it had one. */
  taken(): string[];
  stop(): Promise<void>;
}

/** Starts a sink at an address that is free; mails go into files of the folder. */
export async function startSink(
  address: { ip: string; port: number },
  switches: readonly string[],
  folder: string,
): Promise<Sink> {
  const { ip, port } = address;
  // Started by root, the sink demands to be told whom to run as.
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
