import type { Connection, ConnectionOptions } from "../../src/smtp/client/connection.ts";
import type { OutboundMail, PeerResult, SendResult, Stage } from "../../src/smtp/client/delivery.ts";
import type { PoolDeps } from "../../src/smtp/client/pool-state.ts";
import type { Chance, SteppingClock } from "./chance.ts";

type SessionStage = "mail" | "rcpt" | "data" | "final";
type Answer = "yes" | "later" | "no" | "closing" | "hangs up" | "silent";

/** How a host of the model behaves: probabilities, and the longest time of an answer in milliseconds. */
export interface ModelHost {
  name: string;
  down: number;
  mute: number;
  busy: number;
  /** Answers at each stage of a session other than yes. */
  odd: Partial<Record<SessionStage, readonly [number, Answer][]>>;
  slowMs: number;
  pipelining: boolean;
  /** Connections at a time, over which it greets with 421. */
  takes: number;
}

/** What the model knows of one mail, by its RCPT TO. */
interface Known {
  inFlight: number;
  /** The host that has it whole and has not said no. */
  mayHave: string | null;
  /** Hosts it was given to, in order. */
  hosts: string[];
}

/** Peers in memory, which look for what must never happen and note it. */
export interface ModelPeers {
  faults: string[];
  connect: NonNullable<PoolDeps["connect"]>;
  mail(rcptTo: string): Known;
  /** Connections of the hosts that stand or are being opened, those that say QUIT apart. */
  standing(hosts: readonly string[]): number;
  /** Of those, the ones being opened. */
  opening(hosts: readonly string[]): number;
  /** Whether an opening has failed yet, and when one has ended last, by the clock's elapsed time. */
  failed: boolean;
  openingEndedAt: number;
}

/** Peers for the hosts, by the schedule that `chance` decides. `opened` is told all hosts of the destination to which a connection is being opened. */
export function modelPeers(
  clock: SteppingClock,
  chance: Chance,
  hosts: readonly ModelHost[],
  opened: (hosts: readonly string[]) => void,
): ModelPeers {
  const mails = new Map<string, Known>();
  const faults: string[] = [];
  /** Host of each connection that stands or is being opened. */
  const standing = new Map<object, { host: string; open: boolean }>();
  const knownOf = (rcptTo: string): Known => {
    const known = mails.get(rcptTo) ?? { inFlight: 0, mayHave: null, hosts: [] };
    mails.set(rcptTo, known);
    return known;
  };
  const count = (of: readonly string[], isOpen: readonly boolean[]): number =>
    [...standing.values()].filter(({ host, open }) => of.includes(host) && isOpen.includes(open)).length;
  const peers: ModelPeers = {
    faults,
    failed: false,
    openingEndedAt: 0,
    mail: knownOf,
    standing: (of) => count(of, [true, false]),
    opening: (of) => count(of, [false]),
    async connect(_deps, options) {
      const host = hosts.find(({ name }) => name === options.host);
      if (host === undefined) throw new Error("no such host");
      const self = {};
      standing.set(self, { host: host.name, open: false });
      opened(options.hosts.map(({ name }) => name));
      const failure = await opening(host, options);
      peers.openingEndedAt = clock.elapsed();
      if (failure === null) {
        standing.set(self, { host: host.name, open: true });
        return { kind: "open", connection: connectionTo(host, options, () => standing.delete(self)) };
      }
      standing.delete(self);
      peers.failed = true;
      return { kind: "failed", result: failure };
    },
  };

  const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const reply = (stage: Stage, code: number): PeerResult => ({
    kind: "reply",
    stage,
    code,
    enhanced: null,
    text: "as it is",
  });

  async function opening(host: ModelHost, { timeouts }: ConnectionOptions): Promise<PeerResult | null> {
    if (chance.happens(host.mute)) {
      await wait(timeouts.greeting);
      return { kind: "trouble", stage: "connect", reason: "timeout" };
    }
    await wait(chance.below(host.slowMs));
    if (chance.happens(host.down)) return { kind: "trouble", stage: "connect", reason: "ECONNREFUSED" };
    if (chance.happens(host.busy) || count([host.name], [true]) >= host.takes) return reply("connect", 421);
    return null;
  }

  function answerOf(host: ModelHost, stage: SessionStage): Answer {
    let number = chance.number();
    for (const [probability, answer] of host.odd[stage] ?? []) {
      if (number < probability) return answer;
      number -= probability;
    }
    return "yes";
  }

  function connectionTo(host: ModelHost, options: ConnectionOptions, gone: () => void): Connection {
    const broken = Promise.withResolvers<string>();
    let brokenBy: string | null = null;
    let listener: (() => void) | null = null;
    let contents = 0;
    let mayBegin = true;
    let turn: Promise<void> = Promise.resolve();
    const cut = (reason: string): void => {
      if (brokenBy !== null) return;
      brokenBy = reason;
      gone();
      broken.resolve(reason);
      listener?.();
    };

    /** One reply; a string says why it does not come. */
    async function step(stage: SessionStage): Promise<SendResult | string | null> {
      if (brokenBy !== null) return brokenBy;
      const answer = answerOf(host, stage);
      const silent = answer === "silent";
      const ms = silent ? options.timeouts[stage] : chance.below(host.slowMs);
      const cancelled = Promise.withResolvers<null>();
      const cancel = clock.after(ms, () => cancelled.resolve(null));
      const reason = await Promise.race([cancelled.promise, broken.promise]);
      cancel();
      if (reason !== null) return reason;
      if (brokenBy !== null) return brokenBy;
      if (silent || answer === "hangs up") {
        cut(silent ? "timeout" : "connection closed by the peer");
        return brokenBy;
      }
      if (answer === "yes") return stage === "final" ? reply("final", 250) : null;
      if (answer === "closing") cut("the peer closes the session");
      return reply(stage, answer === "no" ? 550 : answer === "closing" ? 421 : 450);
    }

    async function transaction(mail: OutboundMail, release: () => void): Promise<SendResult> {
      const known = knownOf(mail.rcptTo);
      const before = turn;
      const answered = Promise.withResolvers<void>();
      turn = answered.promise;
      try {
        await before;
        for (const stage of ["mail", "rcpt", "data"] as const) {
          const stopped = await step(stage);
          if (stopped === null) continue;
          release();
          return typeof stopped === "string" ? { kind: "trouble", stage, reason: stopped } : stopped;
        }
        known.mayHave = host.name;
        contents++;
        if (host.pipelining) release();
        const verdict = await step("final");
        contents--;
        if (typeof verdict !== "string" && verdict?.kind === "reply" && verdict.code >= 400)
          known.mayHave = null;
        if (!host.pipelining) release();
        if (typeof verdict === "string") return { kind: "trouble", stage: "final", reason: verdict };
        return verdict ?? reply("final", 250);
      } finally {
        answered.resolve();
      }
    }

    return {
      host: host.name,
      ip: options.ip,
      tls: null,
      async send(mail, _transcript, released) {
        const known = knownOf(mail.rcptTo);
        if (!mayBegin) faults.push(`${mail.rcptTo} was given to a connection that is not free`);
        if (known.inFlight > 0) faults.push(`${mail.rcptTo} is in flight twice`);
        if (known.mayHave !== null)
          faults.push(`${mail.rcptTo} was given to ${host.name} though ${known.mayHave} may have it`);
        mayBegin = false;
        known.inFlight++;
        known.hosts.push(host.name);
        const result = await transaction(mail, () => {
          mayBegin = true;
          released();
        });
        known.inFlight--;
        return result;
      },
      usable: () => brokenBy === null,
      awaitsVerdict: () => contents > 0,
      async quit() {
        gone();
        await wait(chance.below(host.slowMs));
        cut("done");
      },
      cut,
      whenCut(asked) {
        listener = asked;
      },
    };
  }
  return peers;
}
