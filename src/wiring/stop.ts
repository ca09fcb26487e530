import { remainingTime, within } from "../core/time/clock.ts";
import { deregisterInstance } from "../flows/sweep/instance.ts";
import type { MetricsServer } from "../http/server/metrics.ts";
import type { Http } from "../http/server/server.ts";
import type { NameServer } from "./dns.ts";
import type { RateBuckets } from "../queue/rate-limiter.ts";
import type { ServerCertificate } from "./certificates.ts";
import type { Listeners } from "./listeners.ts";
import type { Live } from "./live.ts";
import type { Services } from "./services.ts";
import type { Loop } from "./process/loop.ts";
import { runShutdownSteps } from "./process/shutdown.ts";
import type { TlsHosts } from "./tls-hosts.ts";
import type { Workers } from "./workers.ts";

/** Part of the grace for freeing claims and closing the database, milliseconds. */
const CLOSING_MS = 1000;

/** The running parts of the roles. Null: this process does not have it. */
export interface Roles {
  http: Http;
  live: Live;
  metrics: MetricsServer | null;
  rates: RateBuckets | null;
  listeners: Listeners | null;
  nameServer: NameServer | null;
  workers: Workers | null;
  heartbeat: Loop;
  certificate: ServerCertificate | null;
  hosts: TlsHosts | null;
}

/** Stops the roles, then the services that they share. */
export async function stopRoles(services: Services, roles: Roles, graceMs: number): Promise<void> {
  const { clock, db, queue, pool, instance, inspector, renderer } = services;
  const left = remainingTime(clock, Math.max(0, graceMs - CLOSING_MS));
  services.store?.stop();
  roles.live.close();
  await runShutdownSteps([
    // At once, so that nothing new starts while one of them waits for a slow client.
    [
      () => roles.http.stop(left()),
      () => roles.listeners?.stop(left()),
      () => queue.close(left()),
      () => within(clock, left(), roles.workers?.stop() ?? Promise.resolve(), undefined),
    ],
    [
      () => roles.heartbeat.stop(),
      () => roles.nameServer?.stop(),
      () => roles.metrics?.stop(),
      () => roles.certificate?.stop(),
      () => roles.hosts?.stop(),
      () => inspector.close(),
      () => renderer.close(),
      () => roles.rates?.close(),
    ],
    [() => pool.close(left())],
    // Free the remaining claims, so that they are due again at once.
    [() => deregisterInstance({ db, clock }, instance)],
    [() => db.close()],
  ]);
}
