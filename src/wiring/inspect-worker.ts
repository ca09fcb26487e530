// Entry of the threads that read received mail.
import { systemClock } from "../clock.ts";
import { type AnyAsked, type Found, type ReadingDeps, type ReadingKind, read } from "../flows/readings.ts";
import { CheckMemory } from "../mail/check-memory.ts";
import { dnsServers } from "../net/dns/servers.ts";
import { nodeStyleResolver } from "../net/dns/node-style-resolver.ts";
import { createResolver } from "../net/dns/resolver.ts";
import type { InspectorSettings } from "./inspector.ts";
import { OneAtWork } from "./threads/one-at-work.ts";
import { serveThread, type Work } from "./threads/serve.ts";

/** Octets of a mail above which it is worked on beside others: it lets them have turns by itself. */
const MAX_OCTETS_AT_ONCE = 64 * 1024;

serveThread(reading);

function reading({ host, dnsServers: texts }: InspectorSettings): Work<AnyAsked, Found<ReadingKind>> {
  const resolver = createResolver({ clock: systemClock }, { servers: dnsServers(texts) });
  const memory = new CheckMemory();
  const deps: ReadingDeps = { clock: systemClock, host, resolve: nodeStyleResolver(resolver), memory };
  const oneAtWork = new OneAtWork();
  return {
    async run(asked, turnTo) {
      const place = asked.raw.length > MAX_OCTETS_AT_ONCE ? null : await oneAtWork.take();
      turnTo();
      // What an answer of a name server sets off is work on the mail that asked.
      const resolve: ReadingDeps["resolve"] = (name, type) => {
        const answer = deps.resolve(name, type);
        return (place === null ? answer : place.during(answer)).finally(turnTo);
      };
      try {
        return await read({ ...deps, resolve }, asked);
      } finally {
        place?.leave();
      }
    },
    octets: ({ raw }) => raw.length,
    handedOver: largeBuffers,
  };
}

/** The bytes of an attachment, and those of large bodies. */
function largeBuffers(found: Found<ReadingKind>): ArrayBuffer[] {
  const chunks = "contents" in found ? (found.contents.largeBody ?? []).map(({ bytes }) => bytes) : [];
  const pieces = "bytes" in found && found.bytes !== null ? [found.bytes] : chunks;
  return pieces.flatMap(({ buffer }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}
