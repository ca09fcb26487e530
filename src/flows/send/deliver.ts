import type { Clock } from "../../core/clock.ts";
import type { MxHost, Route } from "../../net/mx.ts";
import { type Secured, type SecuredHost, securityKey } from "../../net/transport-security.ts";
import {
  type DeliveryReport as ClientReport,
  type Destination,
  type PeerResult,
  SHUTTING_DOWN,
} from "../../smtp/client/delivery.ts";
import type { Pool } from "../../smtp/client/pool.ts";
import type { Smarthost } from "../../smtp/client/smarthost.ts";
import { Stopping } from "../renderings.ts";
import {
  type Deliver,
  type DeliveryReport,
  type FindPassage,
  isOpening,
  noFacts,
  type Passage,
  type Shipment,
  Withdrawn,
  wholeReply,
} from "./outcome.ts";

/** Keeps mail on the machine: every recipient is delivered to, and no connection is made. */
export function capturePassage(clock: Clock): Passage {
  const deliver: Deliver = async () => ({
    kind: "accepted",
    reply: { stage: "final", code: 250, enhanced: "2.0.0", text: "captured, not sent" },
    ...noFacts(clock.now()),
    mx: "capture",
  });
  return { kind: "kept", destination: "capture", foregone: null, deliver };
}

/** Hands all mail to one smarthost, whose address is looked up for each shipment. */
export function relayPassage(
  pool: Pool,
  smarthost: Smarthost,
  ehloName: string,
  addresses: (host: string) => Promise<readonly string[] | null>,
  clock: Clock,
): Passage {
  const { host, port, tls, implicitTls, auth } = smarthost;
  const key = `relay:${host}:${port}`;
  const deliver: Deliver = async (shipment, signal) => {
    const found = await addresses(host);
    if (found === null) return trouble("dns", `no address of ${host} is known now`, clock);
    const hosts = [{ name: host, addresses: found }];
    const destination = { key, hosts, port, tls, implicitTls, ehloName };
    const withLogin = auth === undefined ? destination : { ...destination, auth };
    return asOurTrouble(await shipTo(pool, withLogin, shipment, signal));
  };
  return { kind: "relay", destination: key, foregone: null, deliver };
}

/** RFC 4954 §6: authentication required. RFC 3207 §4: STARTTLS must be issued first. */
const NOT_LET_IN = 530;

/**
 * Where the smarthost refuses us for good, whatever the mail, that is no outcome of the mail: as with a wrong password, it
 * waits until the operator has put that right.
 */
function asOurTrouble(report: DeliveryReport): DeliveryReport {
  if (report.kind !== "refused" || report.reply.code < 500) return report;
  const { kind: _, reply, ...facts } = report;
  const stage = reply.code === NOT_LET_IN ? "auth" : reply.stage;
  if (!isOpening(stage)) return report;
  return { ...facts, kind: "trouble", stage, reason: `the smarthost refuses us: ${wholeReply(reply)}` };
}

export interface MxPassages {
  pool: Pool;
  route: (domain: string) => Promise<Route>;
  /** What the domain has published about the TLS of its hosts. */
  secure: (domain: string, hosts: readonly MxHost[]) => Promise<Secured>;
  /** Port of other people's MX hosts. */
  port: number;
  ehloName: string;
  clock: Clock;
}

/** Finds the MX hosts of a domain. */
export function mxPassages(deps: MxPassages): FindPassage {
  return async (domain) => {
    const found = await deps.route(domain);
    switch (found.kind) {
      case "deferred":
        return foregone(() => trouble("dns", found.reason, deps.clock));
      case "no_such_domain":
        return foregone(() =>
          noRoute(`the domain ${domain} takes no mail: it does not exist or has no address`, deps.clock),
        );
      case "null_mx":
        return foregone(() => noRoute(`the domain ${domain} takes no mail (null MX)`, deps.clock));
      case "hosts": {
        const secured = await deps.secure(domain, found.hosts);
        return secured.kind === "hosts"
          ? hostsPassage(deps, secured.hosts)
          : foregone(() => trouble("starttls", secured.reason, deps.clock));
      }
    }
  };
}

/** The way to MX hosts, with what a policy of the domain asks of them. */
function hostsPassage({ pool, port, ehloName }: MxPassages, hosts: readonly SecuredHost[]): Passage {
  const key = destinationKey(hosts, port);
  const destination: Destination = { key, hosts, port, tls: "opportunistic", ehloName };
  const deliver: Deliver = (shipment, signal) => shipTo(pool, destination, shipment, signal);
  return { kind: "hosts", destination: key, foregone: null, deliver };
}

/**
 * The set of MX hosts: domains served by the same hosts share connections, where the same is asked of them. A
 * connection with a certificate that nobody looked at must carry no mail of a domain that enforces one. As JSON, since a name
 * of the DNS may hold any separator (RFC 2181 §11).
 */
function destinationKey(hosts: readonly SecuredHost[], port: number): string {
  const set = hosts.map((host) => JSON.stringify([host.name, securityKey(host)])).sort();
  return `mx:${set.join(",")}:${port}`;
}

/** A domain whose mail comes to nothing for now, for a bug of ours. */
export function lostPassage(clock: Clock): Passage {
  return foregone(() => trouble("internal", "internal error", clock));
}

/** A domain whose mail reaches no peer. All such domains share a destination, and so the bound on what is put off at a time. */
function foregone(report: () => DeliveryReport): Passage {
  return { kind: "none", destination: "none", foregone: report, deliver: async () => report() };
}

async function shipTo(
  pool: Pool,
  destination: Destination,
  shipment: Shipment,
  signal: AbortSignal | undefined,
): Promise<DeliveryReport> {
  const { domain: _, ...mail } = shipment;
  const { result, ...facts } = await pool.deliver(destination, mail, signal);
  if (result.kind === "withdrawn") throw new Withdrawn("another process has it");
  if (isOurStop(result)) throw new Stopping(SHUTTING_DOWN);
  return toReport(facts, result);
}

/** Whether our own end came before the peer had the mail. Once it has, it may have taken it, and the next try is to wait. */
function isOurStop(result: PeerResult): boolean {
  return result.kind === "trouble" && result.stage !== "final" && result.reason === SHUTTING_DOWN;
}

function toReport(
  { mx, ip, tls, transcript, startedAt, durationMs }: Omit<ClientReport, "result">,
  result: PeerResult,
): DeliveryReport {
  const facts = { mx, ip, tls, transcript, startedAt, durationMs };
  switch (result.kind) {
    case "trouble":
      return { ...facts, kind: "trouble", stage: result.stage, reason: result.reason };
    case "unsendable": {
      const { code, enhanced, text } = result;
      return { ...facts, kind: "undeliverable", verdict: "failed", reason: text, code, enhanced };
    }
    case "reply": {
      const { stage, code, enhanced, text } = result;
      const custody = stage === "final" && code >= 200 && code <= 299;
      return { ...facts, kind: custody ? "accepted" : "refused", reply: { stage, code, enhanced, text } };
    }
  }
}

function trouble(stage: string, reason: string, clock: Clock): DeliveryReport {
  return { ...noFacts(clock.now()), kind: "trouble", stage, reason };
}

function noRoute(reason: string, clock: Clock): DeliveryReport {
  return { ...noFacts(clock.now()), kind: "undeliverable", verdict: "hard", reason };
}
