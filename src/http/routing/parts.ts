import type { Key } from "../../core/crypto/key-ring.ts";
import type { TestControls } from "../../flows/dispatch/test-controls.ts";
import type { Config } from "../../config.ts";
import type { ShownSetting } from "../../config/shown.ts";
import type { Quotas } from "../../core/quotas.ts";
import type { LinkDeps } from "../../flows/broadcasts/links.ts";
import type { Sending } from "../../flows/accept/sending.ts";
import type { CertificateState } from "../../flows/certificates/states.ts";
import type { Health } from "../../flows/health/check.ts";
import type { WarningDeps } from "../../flows/health/domains/warnings.ts";
import type { ReadLanesDeps } from "../../flows/lanes/read-lanes.ts";
import type { Streams } from "../../flows/live/streams.ts";
import type { Waits } from "../../flows/live/waits.ts";
import type { ExtractRules } from "../../flows/read/extracts.ts";
import type { FindWaits } from "../../flows/read/waits.ts";
import type { SharedPayloads } from "../../flows/webhooks/shared-payloads.ts";
import type { WebhookDeps } from "../../flows/webhooks/webhooks.ts";
import type { RelayEventDeps } from "../../flows/relays/take-events.ts";
import type { Bytes } from "../../flows/read/bytes.ts";

/** Makes stored content the body of an answer to a project. */
export type StreamBytes = (
  senderId: string,
  bytes: Bytes,
) => Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>>;

/** The database and the settings, which some routes need alone. */
export type Configured = Pick<Parts, "db" | "config">;

/** The services of the API's routes, made once. A route names the part of it that it uses. */
export interface Parts extends Sending, WarningDeps, WebhookDeps, ExtractRules, ReadLanesDeps {
  /** Null without TEST_CONTROLS. */
  testControls: TestControls | null;
  config: Config;
  quotas: Quotas;
  /** Our MX name. */
  hostname: string;
  waits: Waits;
  streams: Streams;
  payloads: SharedPayloads;
  /** Sends stored content. All routes of content share its budget. */
  handOut: StreamBytes;
  /** Proves ids that relays give back. */
  relayKey: Key;
  /** Seals download links. */
  fileKey: Key;
  /** Asks the links of a broadcast. */
  links: LinkDeps["links"];
  /** Gets the certificate of a relay's provider. */
  getDocument: RelayEventDeps["get"];
  /** Parses the URL of a relay. Throws if it is none. */
  readRelayUrl: (url: string) => { host: string; port: number };
  health: () => Promise<Health>;
  findWaits: FindWaits;
  /** What DNS says of our addresses and our zone. */
  dnsHealth: () => Promise<Health>;
  certificates: () => Promise<CertificateState[]>;
  /** The settings in effect as the API shows them. */
  settings: readonly (Omit<ShownSetting, "value" | "default"> & { value: string | null })[];
}
