import { createConnection, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import type { LinkOptions, LinkState } from "./slow-link.ts";

/**
 * Runs a link, with its options as JSON in the first argument. It receives each new state, and reports when it is
 * in force.
 */
const { host, port, roundTripMs }: LinkOptions = JSON.parse(process.argv[2] ?? "{}");
const [there, back] = roundTripMs < 2 ? [0, Math.floor(roundTripMs)] : [roundTripMs / 2, roundTripMs / 2];
const open = new Set<Socket>();
let state: LinkState = "whole";

const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  if (state === "cut") return void client.destroy();
  const target = createConnection({ host, port, noDelay: true, allowHalfOpen: true });
  for (const [from, to, delayMs] of [
    [client, target, there],
    [target, client, back],
  ] as const) {
    open.add(from);
    const later = (pass: () => void): void => {
      if (delayMs === 0) pass();
      else setTimeout(pass, delayMs);
    };
    from.on("data", (bytes) => {
      if (state === "whole") later(() => void to.write(bytes));
    });
    from.on("end", () => later(() => to.end()));
    from.on("error", () => to.destroy());
    from.on("close", () => {
      open.delete(from);
      // After the bytes that are still on the way.
      later(() => to.destroySoon());
    });
  }
});

process.on("message", (next: LinkState) => {
  // A connection from which bytes are missing is of no use.
  if (next === "cut" || state === "stalled") for (const socket of open) socket.destroy();
  state = next;
  process.send?.({ state });
});
process.on("disconnect", () => process.exit(0));
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
