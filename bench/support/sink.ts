import { join } from "node:path";
import { freePort } from "../../test/support/redis.ts";
import { startChild } from "./children.ts";

const SMTP_SINK = "/usr/sbin/smtp-sink";
/** Connections that wait to be taken. */
const BACKLOG = "1000";
/** Connections of the service to the sink. */
export const SINK_CONNECTIONS = 20;

/** Starts Postfix's smtp-sink, which takes every message and keeps none. Returns its port. */
export async function startSink(home: string): Promise<number> {
  const port = freePort();
  // If root starts the sink, it must know which user to run as. It listens long before the first message is accepted.
  const user = process.getuid?.() === 0 ? ["-u", "root"] : [];
  await startChild([SMTP_SINK, ...user, `127.0.0.1:${port}`, BACKLOG], { log: join(home, "sink") });
  return port;
}

/** The settings of a service that relays to a sink. */
export function relayTo(port: number): Record<string, string> {
  return {
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${port}`,
    DESTINATION_CONNECTIONS: String(SINK_CONNECTIONS),
    DESTINATION_RATE: "1000000",
  };
}
