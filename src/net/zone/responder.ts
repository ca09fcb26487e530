import { type Clock, atMostEvery } from "../../core/time/clock.ts";
import type { Log } from "../../log.ts";
import {
  type AnswerKind,
  answerQuery,
  indexZone,
  type ClassifiedReply,
  trouble,
  type Zone,
  type Zones,
} from "./answer.ts";
import { type Query, readQuery } from "./query.ts";
import { RCODE } from "./records.ts";
import { encodeRefusal, encodeReply, encodeTruncated, replyLimit } from "./encode-reply.ts";

/** An encoded answer, with what the rate limit needs. */
export interface Response {
  octets: Buffer;
  kind: AnswerKind;
  /** Name and type asked for; "" if the packet was not a query. */
  question: string;
  /** Returns the empty answer with TC set, or null if the packet was not a query. */
  truncated(): Buffer | null;
}

export interface ResponderDeps {
  clock: Clock;
  log: Log;
  zone: Zone;
  /** Finds further zones. If left out, there are none. */
  findZone?: Zones["find"];
}

/** Answers a packet. Resolves with null if there is no answer. Never rejects. */
export type Responder = (packet: Buffer, transport: "udp" | "tcp") => Promise<Response | null>;

/** Errors are logged at most once in this time, so that a flood does not fill the log. */
const COMPLAINT_EVERY_MS = 60_000;

const noZone: Zones["find"] = async () => null;

/** Creates the responder of all zones, for any transport. If a packet is not a query, it costs only the parsing. */
export function createResponder({ clock, log, zone, findZone = noZone }: ResponderDeps): Responder {
  const zones = { own: indexZone(zone), find: findZone };
  const isToBeTold = atMostEvery(clock, COMPLAINT_EVERY_MS);

  function complain(what: string, error: unknown): void {
    if (isToBeTold()) log.error(what, { error: String(error) });
  }

  /** Answers with a server failure. A false "no such name" would be cached and break signatures. */
  function failed(error: unknown): ClassifiedReply {
    complain("the zone cannot be read", error);
    return trouble(RCODE.serverFailure);
  }

  async function respond(query: Query, transport: "udp" | "tcp"): Promise<Response> {
    const reply = await answerQuery(zones, query).catch(failed);
    return {
      octets: encodeReply(query, reply, replyLimit(query, transport)),
      kind: reply.kind,
      question: `${query.type} ${query.name}`,
      truncated: () => encodeTruncated(query, reply),
    };
  }

  return async (packet, transport) => {
    try {
      const incoming = readQuery(packet);
      if (incoming === null) return null;
      if (incoming.kind === "query") return await respond(incoming.query, transport);
      return { octets: encodeRefusal(incoming), kind: "error", question: "", truncated: () => null };
    } catch (error) {
      // A bug of ours. One packet must not end a process that handles mail.
      complain("a query could not be answered", error);
      return null;
    }
  };
}
