import type { Connection, ConnectionOptions } from "../../src/smtp/client/connection.ts";
import type { OutboundMail, PeerResult, SendResult, Stage } from "../../src/smtp/client/delivery.ts";
import type { PoolDeps } from "../../src/smtp/client/pool-state.ts";
import type { Chance, SteppingClock } from "./chance.ts";

type SessionStage = "mail" | "rcpt" | "data" | "final";
type Answer = "yes" | "later" | "no" | "closing" | "hangs up" | "silent";

/** Behaviour of a model host: probabilities, and the longest answer time in milliseconds. */
export interface ModelHost {
  name: string;
  down: number;
  mute: number;
  busy: number;
  /** Failure answers at each stage of a session. */
  odd: Partial<Record<SessionStage, readonly [number, Answer][]>>;
  slowMs: number;
  pipelining: boolean;
  /** Number of connections above which it greets with 421. */
  takes: number;
}

/** The model's record of one message, found by its RCPT TO. */
interface Known {
  inFlight: number;
  /** The host that has received it completely and not refused it. */
  mayHave: string | null;
  /** Hosts that received it, in order. */
  hosts: string[];
}

/** In-memory peers that record every violation of a rule. */
export interface ModelPeers {
  faults: string[];
  connect: NonNullable<PoolDeps["connect"]>;
  mail(rcptTo: string): Known;
  /** Connections that are open or being opened, without those that sent QUIT. */
  standing(hosts: readonly string[]): number;
  /** The ones of those that are being opened. */
  opening(hosts: readonly string[]): number;
  /** True if an opening has failed yet, and the elapsed time when the last one ended. */
  failed: boolean;
  openingEndedAt: number;
}

/**
 * Makes peers for the hosts, with behaviour that `chance` decides. Calls `opened` with all hosts of the destination
 * to which a connection is being opened.
 */
export function modelPeers(
  clock: SteppingClock,
  chance: Chance,
  hosts: readonly ModelHost[],
  opened: (hosts: readonly string[]) => void,
): ModelPeers {
  const mails = new Map<string, Known>();
  const faults: string[] = [];
  /** Host of each connection that is open or being opened. */
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

    /** One reply. A string is the reason why none comes. */
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
      close: cut,
      onClosed(asked) {
        listener = asked;
      },
    };
  }
  return peers;
}
