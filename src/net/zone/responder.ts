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
import { encodeRefusal, encodeReply, encodeTruncated, replyLimit } from "./encode-reply.ts";
import { type Query, readQuery } from "./query.ts";
import { RCODE } from "./records.ts";
import { createSender, isSecondary, type SendMessage, type SignedQuery, type Transfers } from "./transfer.ts";
import { signAnswer, signatureOctets, type Verdict, verify } from "./tsig.ts";

/** An encoded answer, with what the rate limit needs. */
export interface Response {
  octets: Buffer;
  kind: AnswerKind;
  /** Name and type asked for; "" if the packet was not a query. */
  question: string;
  /** True if a secondary of ours has signed the query, so its address is not forged. */
  trusted: boolean;
  /** Returns the empty answer with TC set, or null if the packet was not a query. */
  truncated(): Buffer | null;
  /** Sends a zone instead of `octets`; null if that was not asked for. Rejects if it cannot be sent to its end. */
  transfer: ((send: SendMessage) => Promise<void>) | null;
}

export interface ResponderDeps {
  clock: Clock;
  log: Log;
  zone: Zone;
  /** Finds further zones. If left out, there are none. */
  findZone?: Zones["find"];
  /** If left out, no zone is copied. */
  transfers?: Transfers;
}

/** Answers a packet from an address. Resolves with null if there is no answer. Never rejects. */
export type Responder = (
  packet: Buffer,
  transport: "udp" | "tcp",
  client: string,
) => Promise<Response | null>;

/** Errors are logged at most once in this time, so that a flood does not fill the log. */
const COMPLAINT_EVERY_MS = 60_000;

const noZone: Zones["find"] = async () => null;
const NO_TRANSFERS: Transfers = { keys: [], secondaries: [], open: async () => null };

/** Types of the queries by which a secondary copies a zone. */
const COPYING = { udp: ["SOA", "IXFR"], tcp: ["SOA", "IXFR", "AXFR"] };

/** The client of a query, by its signature. */
interface Client {
  /** null if the query is not signed. */
  verdict: Verdict | null;
  isSecondary: boolean;
}

/** Creates the responder of all zones, for any transport. If a packet is not a query, it costs only the parsing. */
export function createResponder(deps: ResponderDeps): Responder {
  const { clock, log, zone, findZone = noZone, transfers = NO_TRANSFERS } = deps;
  const zones = { own: indexZone(zone), find: findZone };
  const isToBeTold = atMostEvery(clock, COMPLAINT_EVERY_MS);
  const sendZone = createSender(clock);
  const seconds = (): number => Math.floor(clock.now() / 1000);

  function complain(what: string, error: unknown): void {
    if (isToBeTold()) log.error(what, { error: String(error) });
  }

  /** Answers with a server failure. A false "no such name" would be cached and break signatures. */
  function failed(error: unknown): ClassifiedReply {
    complain("the zone cannot be read", error);
    return trouble(RCODE.serverFailure);
  }

  const read = (query: Query): Promise<ClassifiedReply> => answerQuery(zones, query).catch(failed);

  function clientOf({ signature }: Query, address: string): Client {
    if (signature === null) return { verdict: null, isSecondary: false };
    const verdict = verify(transfers.keys, signature, seconds());
    const { key, error } = verdict;
    return { verdict, isSecondary: error === 0 && key !== null && isSecondary(transfers, address, key) };
  }

  /** Encodes a reply, signed if the query was (RFC 8945 §5.3). */
  function respond(query: Query, transport: "udp" | "tcp", reply: ClassifiedReply, client: Client): Response {
    const { signature } = query;
    const { verdict } = client;
    const signed = (message: Buffer): Buffer =>
      signature === null || verdict === null ? message : signAnswer(message, signature, verdict, seconds());
    const key = verdict?.key ?? null;
    const room = key === null ? 0 : signatureOctets(key);
    return {
      octets: signed(encodeReply(query, reply, replyLimit(query, transport) - room)),
      kind: reply.kind,
      question: `${query.type} ${query.name}`,
      trusted: client.isSecondary,
      truncated: () => signed(encodeTruncated(query, reply)),
      transfer: null,
    };
  }

  /**
   * Answers AXFR, IXFR with the whole zone if it has changed (RFC 1995 §4), and SOA. Nothing comes from a cache, or a
   * secondary that has just got a notice would take its copy for current.
   */
  async function transfer(
    { query, signature, key }: SignedQuery,
    transport: "udp" | "tcp",
    client: Client,
  ): Promise<Response> {
    const whole = await transfers.open(query.name).catch(failed);
    if (whole === null)
      return respond(
        query,
        transport,
        query.type === "SOA" ? await read(query) : trouble(RCODE.notAuthorized),
        client,
      );
    if ("kind" in whole) return respond(query, transport, whole, client);
    // RFC 1995 §2: the SOA alone says that the copy is current, or that the client has to ask by TCP.
    const head: ClassifiedReply = {
      kind: "records",
      rcode: RCODE.noError,
      authoritative: true,
      answers: [whole.soa],
      authorities: [],
    };
    const response = respond(query, transport, head, client);
    const isCurrent = query.knownSerial === whole.soa.data.serial;
    if (transport === "udp" || query.type === "SOA" || isCurrent) return response;
    const sending = async (send: SendMessage): Promise<void> => {
      await sendZone(whole, { query, signature, key }, send).catch((error: unknown) => {
        complain("a transfer broke off", error);
        throw error;
      });
    };
    return { ...response, transfer: sending };
  }

  async function answer(query: Query, transport: "udp" | "tcp", address: string): Promise<Response> {
    const client = clientOf(query, address);
    const { signature } = query;
    const key = client.verdict?.key ?? null;
    if (client.verdict !== null && client.verdict.error !== 0)
      return respond(query, transport, trouble(RCODE.notAuthorized), client);
    if (
      COPYING[transport].includes(query.type) &&
      query.class === "IN" &&
      signature !== null &&
      key !== null
    ) {
      if (client.isSecondary) return transfer({ query, signature, key }, transport, client);
      if (query.type !== "SOA")
        complain("a transfer was refused", `DNS_SECONDARIES has no ${address}#${key.name}`);
    }
    return respond(query, transport, await read(query), client);
  }

  return async (packet, transport, address) => {
    try {
      const incoming = readQuery(packet);
      if (incoming === null) return null;
      if (incoming.kind === "query") return await answer(incoming.query, transport, address);
      const octets = encodeRefusal(incoming);
      return {
        octets,
        kind: "error",
        question: "",
        trusted: false,
        truncated: () => null,
        transfer: null,
      };
    } catch (error) {
      // A bug of ours. One packet must not end a process that handles mail.
      complain("a query could not be answered", error);
      return null;
    }
  };
}
