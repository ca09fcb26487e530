import { type Answer, decode, encode, type Packet, type Question, type RecordType } from "dns-packet";
import { type Arrivals, arrivals } from "./arrivals.ts";
import { OUR_HOST } from "./our-host.ts";

/** How the server treats a question. `hold` answers once `release` is called. */
export type DnsBehaviour =
  | "answer"
  | "servfail"
  | "refused"
  | "formerr_on_edns"
  | "silent"
  | "truncate_udp"
  | "fold"
  | "fold_no_tcp"
  | "hold";

export interface DnsQuery {
  name: string;
  type: RecordType;
  transport: "udp" | "tcp";
  edns: boolean;
  /** The name as it was queried. */
  spelling: string;
}

export interface DnsRecord {
  name: string;
  type: "A" | "AAAA" | "CNAME" | "MX" | "NS" | "PTR" | "SOA" | "TXT";
  data: unknown;
  ttl?: number;
}

/** Packets to send in place of the answer, given the answer and the bytes of the query. */
export type Forger = (answer: Packet, query: Buffer) => Buffer[];

export interface TestDns {
  ip: string;
  port: number;
  /** `ip:port`, as in DNS_SERVERS. */
  address: string;
  /** All questions so far, in order. */
  queries: Arrivals<DnsQuery>;
  /** Adds records to those that a name already has. */
  add(...records: DnsRecord[]): void;
  /** Removes all records of a name. */
  remove(name: string): void;
  /** For all names, or for one. */
  behave(behaviour: DnsBehaviour, name?: string): void;
  /** Replaces the packets of each UDP answer. If null, restores normal answers. */
  forge(forger: Forger | null): void;
  /** The AD bit of answers. */
  authentic(flag: boolean): void;
  release(): void;
  count(name?: string, type?: RecordType): number;
  stop(): void;
}

interface State {
  records: DnsRecord[];
  everywhere: DnsBehaviour;
  byName: Map<string, DnsBehaviour>;
  forger: Forger | null;
  authentic: boolean;
  held: (() => void)[];
  queries: Arrivals<DnsQuery>;
}

const RA = 1 << 7;
const AD = 1 << 5;
const TC = 1 << 9;
const RCODES = { servfail: 2, nxdomain: 3, formerr: 1, refused: 5 } as const;
const NEGATIVE_TTL = 60;

/** A DNS server on loopback, UDP and TCP on one port, over a zone given as records. It follows CNAMEs within the zone. */
export async function startDns(...records: DnsRecord[]): Promise<TestDns> {
  const state: State = {
    records: [...records],
    everywhere: "answer",
    byName: new Map(),
    forger: null,
    authentic: false,
    held: [],
    queries: arrivals(),
  };
  const { udp, tcp } = await listenBoth(state);
  return {
    ip: OUR_HOST,
    port: udp.port,
    address: `${OUR_HOST}:${udp.port}`,
    queries: state.queries,
    add: (...added) => void state.records.push(...added),
    remove: (name) => {
      state.records = state.records.filter((record) => record.name !== name);
    },
    behave(behaviour, name) {
      if (name === undefined) state.everywhere = behaviour;
      else state.byName.set(name, behaviour);
    },
    forge: (forger) => {
      state.forger = forger;
    },
    authentic: (flag) => {
      state.authentic = flag;
    },
    release: () => {
      for (const answer of state.held.splice(0)) answer();
    },
    count: (name, type) =>
      state.queries.items.filter(
        (query) => (name ?? query.name) === query.name && (type ?? query.type) === query.type,
      ).length,
    stop: () => {
      udp.close();
      tcp.stop(true);
    },
  };
}

/** A record in the API's format. */
export interface ShownRecord {
  type: "CNAME" | "TXT" | "MX";
  name: string;
  value: string;
  priority?: number;
}

/** Adds records in the API's format to the test's zone. */
export function publish(dns: TestDns, records: readonly ShownRecord[]): void {
  for (const { type, name, value, priority } of records) {
    const data = type === "MX" ? { preference: priority, exchange: value } : value;
    dns.add({ name, type, data });
  }
}

type Udp = Bun.udp.Socket<"buffer">;
type Tcp = Bun.TCPSocketListener<{ received: Buffer }>;

/** Lets the kernel choose the UDP port. If TCP has that port in use already, tries another one. */
async function listenBoth(state: State): Promise<{ udp: Udp; tcp: Tcp }> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const udp = await listenUdp(state);
    try {
      return { udp, tcp: listenTcp(state, udp.port) };
    } catch {
      udp.close();
    }
  }
  throw new Error("no port free for both UDP and TCP");
}

function listenUdp(state: State): Promise<Udp> {
  return Bun.udpSocket({
    hostname: OUR_HOST,
    binaryType: "buffer",
    socket: {
      data: (socket, packet, port, address) =>
        handle(state, packet, "udp", (answer, truncated) => {
          const packets =
            state.forger === null || truncated ? [encode(answer)] : state.forger(answer, packet);
          for (const octets of packets) sendTo(socket, octets, port, address);
        }),
      error: () => undefined,
    },
  });
}

/** Ignores send errors: if a client has closed its socket, the kernel reports it at the next send to any client. */
function sendTo(socket: Udp, octets: Buffer, port: number, address: string): void {
  for (let attempt = 0; attempt < 10; attempt++)
    try {
      socket.send(octets, port, address);
      return;
    } catch (error) {
      if (attempt === 9) throw error;
    }
}

function listenTcp(state: State, port: number): Tcp {
  return Bun.listen<{ received: Buffer }>({
    hostname: OUR_HOST,
    port,
    socket: {
      open: (socket) => {
        socket.data = { received: Buffer.alloc(0) };
      },
      data: (socket, chunk) => {
        socket.data.received = Buffer.concat([socket.data.received, chunk]);
        const { received } = socket.data;
        if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
        handle(state, received.subarray(2), "tcp", (answer) => {
          const octets = encode(answer);
          const length = Buffer.alloc(2);
          length.writeUInt16BE(octets.length);
          socket.end(Buffer.concat([length, octets]));
        });
      },
    },
  });
}

function handle(
  state: State,
  packet: Buffer,
  transport: "udp" | "tcp",
  send: (answer: Packet, truncated: boolean) => void,
): void {
  const query = decode(packet);
  const question = query.questions?.[0];
  if (question === undefined) return;
  const name = question.name.toLowerCase();
  const edns = (query.additionals ?? []).some((record) => record.type === "OPT");
  const behaviour = state.byName.get(name) ?? state.everywhere;
  const truncated = behaviour === "truncate_udp" && transport === "udp";
  const reply = (): void =>
    send(answerTo(state, query.id ?? 0, question, behaviour, truncated, edns), truncated);
  if (behaviour === "hold") state.held.push(reply);
  state.queries.add({ name, type: question.type, transport, edns, spelling: question.name });
  const deaf = behaviour === "silent" || (behaviour === "fold_no_tcp" && transport === "tcp");
  if (behaviour !== "hold" && !deaf) reply();
}

function answerTo(
  state: State,
  id: number,
  question: Question,
  behaviour: DnsBehaviour,
  truncated: boolean,
  edns: boolean,
): Packet {
  const folds = behaviour === "fold" || behaviour === "fold_no_tcp";
  const echoed = folds ? { ...question, name: question.name.toLowerCase() } : question;
  const base: Packet = { type: "response", id, flags: RA, questions: [echoed] };
  if (behaviour === "servfail") return { ...base, flags: RA | RCODES.servfail };
  if (behaviour === "refused") return { ...base, flags: RA | RCODES.refused };
  if (behaviour === "formerr_on_edns" && edns) return { ...base, flags: RA | RCODES.formerr };
  if (truncated) return { ...base, flags: RA | TC };
  const { answers, exists } = lookUp(state.records, question);
  const flags = RA | (state.authentic ? AD : 0) | (exists ? 0 : RCODES.nxdomain);
  const final = answers[answers.length - 1];
  const dangling = final !== undefined && final.type !== question.type;
  return { ...base, flags, answers, authorities: final === undefined || dangling ? authority(final) : [] };
}

/** Leaves a CNAME out of the zone for the client to follow, without an SOA. */
function authority(dangling: Answer | undefined): Answer[] {
  if (dangling !== undefined) return [];
  const data = {
    mname: "ns.test",
    rname: "root.test",
    serial: 1,
    refresh: 60,
    retry: 60,
    expire: 60,
    minimum: NEGATIVE_TTL,
  };
  return [{ name: "test", type: "SOA", ttl: NEGATIVE_TTL, data }];
}

function lookUp(records: readonly DnsRecord[], question: Question): { answers: Answer[]; exists: boolean } {
  const answers: Answer[] = [];
  let name = question.name.toLowerCase();
  for (let step = 0; step < 20; step++) {
    const own = records.filter((record) => record.name === name);
    const wanted = own.filter((record) => record.type === question.type);
    const alias = own.find((record) => record.type === "CNAME");
    if (wanted.length > 0 || alias === undefined) {
      answers.push(...wanted.map(toAnswer));
      const exists =
        answers.length > 0 || records.some(({ name: other }) => other === name || other.endsWith(`.${name}`));
      return { answers, exists };
    }
    answers.push(toAnswer(alias));
    name = String(alias.data);
  }
  return { answers, exists: true };
}

function toAnswer({ name, type, ttl = 300, data }: DnsRecord): Answer {
  // The zone is the test's own: its data fit their types.
  return { name, type, ttl, class: "IN", data } as Answer;
}
