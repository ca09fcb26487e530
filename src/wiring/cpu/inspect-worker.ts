// Entry of the worker threads that read received mail.
import { systemClock } from "../../clock.ts";
import {
  type AnyAsked,
  type Found,
  type ReadingDeps,
  type ReadingKind,
  runReading,
} from "../../flows/mime/reading-tasks.ts";
import { CheckMemory } from "../../mail/auth/check-memory.ts";
import { dnsServers } from "../../net/dns/servers.ts";
import { nodeStyleResolver } from "../../net/dns/node-style-resolver.ts";
import { createResolver } from "../../net/dns/resolver.ts";
import type { InspectorSettings } from "./inspector.ts";
import { packedInspection } from "./packed-inspection.ts";
import { TaskQueue } from "./task-queue.ts";
import { serveCpu, type Work } from "./serve.ts";

/** Size above which a message is read in parallel with others, because reading it yields by itself. */
const MAX_OCTETS_AT_ONCE = 64 * 1024;

serveCpu(reading);

function reading({
  host,
  dnsServers: texts,
  ownZone,
}: InspectorSettings): Work<AnyAsked, Found<ReadingKind>> {
  const resolver = createResolver(
    { clock: systemClock },
    { servers: dnsServers(texts), ...(ownZone === undefined ? {} : { ownZone }) },
  );
  const memory = new CheckMemory();
  const deps: ReadingDeps = { clock: systemClock, host, resolve: nodeStyleResolver(resolver), memory };
  const oneAtWork = new TaskQueue();
  return {
    async run(asked, turnTo) {
      const place = asked.raw.length > MAX_OCTETS_AT_ONCE ? null : await oneAtWork.take();
      turnTo();
      // The work after a DNS answer belongs to the message that asked.
      const resolve: ReadingDeps["resolve"] = (name, type) => {
        const answer = deps.resolve(name, type);
        return (place === null ? answer : place.waitFor(answer)).finally(turnTo);
      };
      try {
        return await runReading({ ...deps, resolve }, asked);
      } finally {
        place?.end();
      }
    },
    octets: ({ raw }) => raw.length,
    handedOver: largeBuffers,
    packed: packedInspection,
  };
}

/** Returns the buffers of an attachment or of a large body. */
function largeBuffers(found: Found<ReadingKind>): ArrayBuffer[] {
  const chunks = "contents" in found ? (found.contents.largeBody ?? []).map(({ bytes }) => bytes) : [];
  const pieces = "bytes" in found && found.bytes !== null ? [found.bytes] : chunks;
  return pieces.flatMap(({ buffer }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}
