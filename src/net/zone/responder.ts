import { type Clock, seldom } from "../../core/clock.ts";
import type { Log } from "../../log.ts";
import { type AnswerKind, answerQuery, indexZone, type KindOfReply, trouble, type Zone } from "./answer.ts";
import { type Query, readQuery } from "./query.ts";
import { RCODE } from "./records.ts";
import { encodeRefusal, encodeReply, encodeTruncated, replyLimit } from "./reply-wire.ts";

/** An answer ready to be sent, and what a rate limit needs to know of it. */
export interface Response {
  octets: Buffer;
  kind: AnswerKind;
  /** Name and type asked for; "" where the packet was no query. */
  question: string;
  /** The empty answer with TC set; null for what is no answer to a query. */
  truncated(): Buffer | null;
}

export interface ResponderDeps {
  clock: Clock;
  log: Log;
  zone: Zone;
}

/** What a packet is answered with; null: nothing. Never rejects. */
export type Responder = (packet: Buffer, transport: "udp" | "tcp") => Promise<Response | null>;

/** What goes wrong is told once in this time, not with each packet of a flood. */
const COMPLAINT_EVERY_MS = 60_000;

/** The answering end of a zone, whatever carries the packets. What is no query costs no more than reading it. */
export function createResponder({ clock, log, zone }: ResponderDeps): Responder {
  const index = indexZone(zone);
  const isToBeTold = seldom(clock, COMPLAINT_EVERY_MS);

  function complain(what: string, error: unknown): void {
    if (isToBeTold()) log.error(what, { error: String(error) });
  }

  /** A zone that cannot tell says so: never that a name does not exist, which would be kept and spoil signatures. */
  function failed(error: unknown): KindOfReply {
    complain("the zone cannot be read", error);
    return trouble(RCODE.serverFailure);
  }

  async function respond(query: Query, transport: "udp" | "tcp"): Promise<Response> {
    const reply = await answerQuery(index, query).catch(failed);
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
      // A fault of ours: one packet must not be able to end a process that has mail in hand.
      complain("a query could not be answered", error);
      return null;
    }
  };
}
