import { loadConfig } from "../../src/config.ts";
import { seal } from "../../src/core/crypto/secretbox.ts";
import { hostsDomains } from "../../src/flows/certificates/domain-hosts.ts";
import { CHALLENGE_SETTLE_MS } from "../../src/flows/certificates/order.ts";
import { openRenewal, type RenewDeps } from "../../src/flows/certificates/renew.ts";
import { serviceCertificate, wantedCertificates } from "../../src/flows/certificates/wanted.ts";
import { delegatedZones } from "../../src/flows/zone/delegated-zone.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import { createAcmeClient } from "../../src/net/acme/client.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { startZoneServer, type ZoneServer } from "../../src/net/zone/server.ts";
import {
  type CertificateRecord,
  findCertificate,
  wantCertificate,
} from "../../src/store/domains/certificates.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { BOX_KEY, TEST_KEY } from "./api.ts";
import { testDatabase } from "./database.ts";
import type { Pebble } from "./pebble.ts";
import { type ShiftedClock, shiftedClock } from "./shifted-clock.ts";
import { quietLog } from "./zone.ts";

export const SERVICE_DOMAIN = "mail.test";
export const EMAIL = "operator@example.com";
/** Turns that any order needs less than. */
const MAX_TURNS = 400;
/** Time that passes from turn to turn, and the longest pause between two looks at an order, milliseconds. */
const STEP_MS = 2000;
const MAX_POLL_MS = 61_000;
/** Pause between two turns, so that the CA gets to its work, milliseconds. A running service pauses longer. */
const TURN_PAUSE_MS = 5;

/** The part of the service that gets certificates: its database, its name server, and the chore. */
export interface Installation {
  db: Db;
  clock: ShiftedClock;
  zone: ZoneServer;
  /** Stores a key for the first certificate, because making one takes as long as a test. */
  keyed(pebble: Pebble): Promise<void>;
  /** Makes the chore as a process does at its start. */
  renewal(pebble: Pebble, changes?: Partial<RenewDeps>): () => Promise<void>;
  /** Returns a certificate, the service's own if no id is given. */
  record(id?: string): Promise<CertificateRecord>;
  /** Runs turns, each when it is due, until the certificate is in the state. Returns its record. */
  until(
    turn: () => Promise<void>,
    is: (record: CertificateRecord) => boolean,
    id?: string,
  ): Promise<CertificateRecord>;
  stop(): Promise<void>;
}

/**
 * An installation with an empty database, whose name server listens on loopback.
 * @param port of the name server, which a CA may know
 * @param readZone wraps the database for the name server
 * @param env further settings
 */
export async function installation(
  port: number,
  readZone = (db: Db): Db => db,
  env: Record<string, string> = {},
): Promise<Installation> {
  const clock = shiftedClock();
  const { db, remove } = await testDatabase();
  const settings = loadConfig({ SERVICE_DOMAIN, ...env });
  const read = { db: readZone(db), clock };
  const zone = await startZoneServer(
    {
      clock,
      log: quietLog(),
      zone: await openZone(read, settings),
      findZone: delegatedZones(read, settings),
    },
    { hosts: ["127.0.0.1"], port },
  );
  const wanted = serviceCertificate(settings);
  const record = async (id = wanted.id) => {
    const found = await findCertificate(db, id);
    if (found === null) throw new Error("no certificate is wanted");
    return found;
  };
  return {
    db,
    clock,
    zone,
    record,
    async keyed({ directory }) {
      await db.write([
        wantCertificate({ ...wanted, directory }, clock.now()),
        { sql: "UPDATE certificates SET order_key = ?", args: [seal(BOX_KEY, TEST_KEY.privateKeyPem)] },
      ]);
    },
    renewal({ directory, ca }, changes = {}) {
      const resolver = createResolver({ clock }, { servers: [{ ip: "127.0.0.1", port: zone.port }] });
      return openRenewal({
        db,
        clock,
        directory,
        serviceDomain: SERVICE_DOMAIN,
        boxKey: BOX_KEY,
        email: EMAIL,
        external: null,
        random: () => 0,
        settleMs: CHALLENGE_SETTLE_MS,
        client: createAcmeClient({ clock, resolver, ca }, directory),
        wanted: () => wantedCertificates(settings),
        domains: hostsDomains(settings),
        ...changes,
      });
    },
    async until(turn, is, id) {
      for (let count = 0; count < MAX_TURNS; count++) {
        await turn();
        const now = await record(id);
        if (is(now)) return now;
        clock.shift(STEP_MS);
        // Otherwise an order would be looked at ever more rarely, and the CA works by another clock.
        await db.write([
          {
            sql: "UPDATE certificates SET due_at = ? WHERE due_at BETWEEN ? AND ?",
            args: [clock.now(), clock.now(), clock.now() + MAX_POLL_MS],
          },
        ]);
        await Bun.sleep(TURN_PAUSE_MS);
      }
      const { lastError, failures, order } = await record(id);
      throw new Error(`not in that state: ${JSON.stringify({ lastError, failures, order })}`);
    },
    async stop() {
      zone.stop();
      await remove();
    },
  };
}

/** States of a certificate that tests wait for. */
export const isIssued = ({ issued, renewAt }: CertificateRecord): boolean =>
  issued !== null && renewAt !== null;
export const hasFailed = ({ lastError }: CertificateRecord): boolean => lastError !== null;

/** A database whose reads and writes first wait for `before`, which may throw. */
export function watchedDb(db: Db, before: () => Promise<void> | void): Db {
  return {
    async all(...args) {
      await before();
      return db.all(...args);
    },
    async first(...args) {
      await before();
      return db.first(...args);
    },
    async write(...args) {
      await before();
      return db.write(...args);
    },
    readConfig: (...args) => db.readConfig(...args),
    refreshReads: () => db.refreshReads(),
    syncWithPrimary: () => db.syncWithPrimary(),
    migrate: (...args) => db.migrate(...args),
    close: () => db.close(),
  };
}
