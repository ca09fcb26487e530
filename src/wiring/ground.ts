import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import type { Inspect } from "../flows/readings.ts";
import type { MailLinks } from "../flows/send/make-mail.ts";
import type { RenderMemory } from "../flows/send/render.ts";
import type { Metrics } from "../metrics.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import type { Queue } from "../queue/port.ts";
import type { Certificate } from "../smtp/certificate.ts";
import type { Pool } from "../smtp/client/pool.ts";
import type { Db } from "../store/engine/client.ts";
import type { Instance } from "../store/instances.ts";
import type { Inspector } from "./inspector.ts";
import type { InstallationKeys } from "./master-key.ts";
import type { Objects } from "./objects.ts";
import type { OwnedRenderer } from "./renderer.ts";

/** What every role stands on. */
export interface Ground {
  config: Config;
  clock: Clock;
  db: Db;
  queue: Queue;
  keys: InstallationKeys;
  resolver: Resolver;
  pool: Pool;
  /** What STARTTLS begins with; null for a process that does not listen. */
  certificate: Promise<Certificate> | null;
  instance: Instance;
  /** Where contents leave the database for; null: nowhere. */
  store: Objects | null;
  inspector: Inspector;
  /** The inspector's, timed. */
  inspect: Inspect;
  /** What every mail is made with. */
  links: MailLinks;
  renderer: OwnedRenderer;
  memory: RenderMemory;
  metrics: Metrics;
}
