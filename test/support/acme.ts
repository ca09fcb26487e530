import { loadConfig } from "../../src/config.ts";
import { openRenewal, type RenewDeps } from "../../src/flows/certificates/renew.ts";
import { serviceCertificate, wantedCertificates } from "../../src/flows/certificates/wanted.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import { createAcmeClient } from "../../src/net/acme/client.ts";
import { createResolver } from "../../src/net/dns/resolver.ts";
import { startZoneServer, type ZoneServer } from "../../src/net/zone/server.ts";
import { type CertificateRecord, findCertificate } from "../../src/store/certificates.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { BOX_KEY } from "./api.ts";
import { testDatabase } from "./database.ts";
import type { Pebble } from "./pebble.ts";
import { type ShiftedClock, shiftedClock } from "./shifted-clock.ts";
import { quietLog } from "./zone.ts";

export const SERVICE_DOMAIN = "mail.test";
export const EMAIL = "operator@example.com";
/** Turns that any order needs less than. */
const MAX_TURNS = 400;
/** Pause between two turns, so that the CA gets to its work, milliseconds. A running service pauses longer. */
const TURN_PAUSE_MS = 5;

/** The part of the service that gets certificates: its database, its name server, and the chore. */
export interface Installation {
  db: Db;
  clock: ShiftedClock;
  zone: ZoneServer;
  /** Makes the chore as a process does at its start. */
  renewal(pebble: Pebble, changes?: Partial<RenewDeps>): () => Promise<void>;
  record(): Promise<CertificateRecord>;
  /** Runs turns, each when it is due, until the certificate is in the state. Returns its record. */
  until(turn: () => Promise<void>, is: (record: CertificateRecord) => boolean): Promise<CertificateRecord>;
  stop(): Promise<void>;
}

/** An installation with an empty database, whose name server listens on loopback. */
export async function installation(): Promise<Installation> {
  const clock = shiftedClock();
  const { db, remove } = await testDatabase();
  const settings = loadConfig({ SERVICE_DOMAIN });
  const zone = await startZoneServer(
    { clock, log: quietLog(), zone: await openZone({ db, clock }, settings) },
    { hosts: ["127.0.0.1"], port: 0 },
  );
  const { id } = serviceCertificate(settings);
  const record = async () => {
    const found = await findCertificate(db, id);
    if (found === null) throw new Error("no certificate is wanted");
    return found;
  };
  return {
    db,
    clock,
    zone,
    record,
    renewal({ directory, ca }, changes = {}) {
      const resolver = createResolver({ clock }, { servers: [{ ip: "127.0.0.1", port: zone.port }] });
      return openRenewal({
        ...{ db, clock, directory, boxKey: BOX_KEY, email: EMAIL, external: null, random: () => 0 },
        client: createAcmeClient({ clock, resolver, ca }, directory),
        wanted: () => wantedCertificates(settings),
        ...changes,
      });
    },
    async until(turn, is) {
      for (let count = 0; count < MAX_TURNS; count++) {
        await turn();
        const now = await record();
        if (is(now)) return now;
        clock.shift(Math.max(0, Math.min(now.dueAt - clock.now(), 2000)));
        await Bun.sleep(TURN_PAUSE_MS);
      }
      throw new Error(`not in that state: ${JSON.stringify(await record())}`);
    },
    async stop() {
      zone.stop();
      await remove();
    },
  };
}

/** States of a certificate that tests wait for. */
export const isIssued = ({ issued, renewAt }: CertificateRecord): boolean => issued !== null && renewAt !== null;
export const hasFailed = ({ lastError }: CertificateRecord): boolean => lastError !== null;
