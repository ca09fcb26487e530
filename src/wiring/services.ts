import type { Config } from "../config.ts";
import type { Sending } from "../flows/accept/sending.ts";
import type { RightOfWay } from "../core/concurrency/right-of-way.ts";
import type { Key } from "../core/crypto/key-ring.ts";
import type { MakeRsaKey } from "../core/crypto/rsa-key.ts";
import type { TestControls } from "../flows/dispatch/test-controls.ts";
import type { FreeSpace } from "../flows/free-space.ts";
import type { Metrics } from "../metrics.ts";
import type { Resolver } from "../net/dns/resolver.ts";
import type { Certificate } from "../smtp/listener/certificate.ts";
import type { Pool } from "../smtp/client/pool.ts";
import type { Instance } from "../store/installation/instances.ts";
import type { CommitBell } from "./commit-bell.ts";
import type { Inspector } from "./cpu/inspector.ts";
import type { InstallationKeys } from "./store/installation-keys.ts";
import type { Objects } from "./store/objects.ts";
import type { OwnedRenderer } from "./cpu/renderer.ts";

/**
 * How the hosts of relays' providers are reached, from which certificates come. Only a caller of `startApp` can change this,
 * and no setting: empty, they need public addresses and certificates that the built-in authorities have signed.
 */
export interface DocumentHosts {
  /** PEM of the trusted authorities. */
  ca?: string;
  /** In place of 443. */
  port?: number;
  /** Allows private addresses. */
  allowPrivate?: true;
}

/** The services that all roles share. */
export interface Services extends Sending {
  config: Config;
  keys: InstallationKeys;
  /** Proves ids that relays give back. */
  relayKey: Key;
  /** Looks which master keys are in use, and returns their ids. */
  masterKeys: () => Promise<string>;
  /** Makes keys for DKIM and for a self-signed certificate. */
  makeRsaKey: MakeRsaKey;
  documentHosts: DocumentHosts;
  resolver: Resolver;
  pool: Pool;
  /** Certificate of the servers with TLS; null if the process has none. */
  certificate: Promise<Certificate> | null;
  instance: Instance;
  /** The object store; null if contents stay in the database. */
  store: Objects | null;
  inspector: Inspector;
  renderer: OwnedRenderer;
  metrics: Metrics;
  /** Lets bulk mail wait for other work of this process. */
  rightOfWay: RightOfWay;
  /** Rings after each commit of this process. */
  bell: CommitBell;
  /** Clock and failures that tests steer; null without TEST_CONTROLS. */
  testControls: TestControls | null;
  /** Knows if the disk of the database has room. */
  space: FreeSpace;
}
