import { afterEach } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { log } from "../../src/log.ts";
import type { DeliveryReport, Destination, OutboundMail, Timeouts } from "../../src/smtp/client/delivery.ts";
import { createPool, type Pool } from "../../src/smtp/client/pool.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";

export const RAW = Buffer.from("Subject: x\r\n\r\n.dots\r\n..\r\nend\r\n");
export const MAIL: OutboundMail = { mailFrom: "b+1@out.test", rcptTo: "to@in.test", raw: RAW };

export interface Given {
  to?: Partial<Destination>;
  mail?: Partial<OutboundMail>;
  clock?: Clock;
  timeouts?: Partial<Timeouts>;
  /** PEM of the authority that the client trusts. */
  trusted?: string;
}

/** Peers and pools of a test file. Those of each test are closed after it. */
export interface ClientHarness {
  peer(options?: MxOptions): TestMx;
  /** A pool of one connection to each destination. */
  pool(given?: Pick<Given, "clock" | "timeouts" | "trusted">): Pool;
  /** Delivers one message with a new pool. */
  send(mx: TestMx, given?: Given): Promise<DeliveryReport>;
}

export function destination(mx: TestMx, change: Partial<Destination> = {}): Destination {
  const hosts = [{ name: "mx.test", addresses: [mx.ip] }];
  return { key: "k", hosts, port: mx.port, tls: "opportunistic", ehloName: "us.test", ...change };
}

/** Call once in a test file. */
export function clientHarness(): ClientHarness {
  const mxs: TestMx[] = [];
  const pools: Pool[] = [];
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.close(0);
    for (const mx of mxs.splice(0)) mx.stop();
  });
  const harness: ClientHarness = {
    peer(options) {
      const mx = startMx(options);
      mxs.push(mx);
      return mx;
    },
    pool({ clock = systemClock, timeouts = {}, trusted } = {}) {
      const deps = { clock, log: log("smtp"), ca: trusted };
      const pool = createPool(deps, { maxConnectionsPerDestination: 1, timeouts });
      pools.push(pool);
      return pool;
    },
    send: (mx, given = {}) =>
      harness.pool(given).deliver(destination(mx, given.to), { ...MAIL, ...given.mail }),
  };
  return harness;
}
