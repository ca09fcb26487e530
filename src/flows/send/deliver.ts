import type { Clock } from "../../core/clock.ts";
import type { MxHost, Route } from "../../net/mx.ts";
import type { DeliveryReport as ClientReport, Destination } from "../../smtp/client/delivery.ts";
import type { Pool } from "../../smtp/client/pool.ts";
import type { Smarthost } from "../../smtp/client/smarthost.ts";
import { type Deliver, type DeliveryReport, noFacts, type Shipment } from "./outcome.ts";

/** Keeps mail on the machine: every recipient is delivered to, and no connection is made. */
export function captureDelivery(clock: Clock): Deliver {
  return async () => ({
    kind: "accepted",
    reply: { stage: "final", code: 250, enhanced: "2.0.0", text: "captured, not sent" },
    ...noFacts(clock.now()),
    mx: "capture",
  });
}

/** Hands all mail to one smarthost, whose address is looked up for each shipment. */
export function relayDelivery(
  pool: Pool,
  smarthost: Smarthost,
  ehloName: string,
  addresses: (host: string) => Promise<readonly string[] | null>,
  clock: Clock,
): Deliver {
  return async (shipment) => {
    const startedAt = clock.now();
    const found = await addresses(smarthost.host);
    if (found === null) return trouble(`no address of ${smarthost.host} is known now`, startedAt, clock);
    const { host, port, tls, implicitTls, auth } = smarthost;
    return shipTo(
      pool,
      {
        key: `relay:${host}:${port}`,
        hosts: [{ name: host, addresses: found }],
        port,
        tls,
        implicitTls,
        ehloName,
        ...(auth === undefined ? {} : { auth }),
      },
      shipment,
    );
  };
}

export interface MxDelivery {
  pool: Pool;
  route: (domain: string) => Promise<Route>;
  /** Port of other people's MX hosts. */
  port: number;
  ehloName: string;
  clock: Clock;
}

/** Hands mail to the MX hosts of the recipient's domain. */
export function mxDelivery({ pool, route, port, ehloName, clock }: MxDelivery): Deliver {
  return async (shipment) => {
    const startedAt = clock.now();
    const found = await route(shipment.domain);
    switch (found.kind) {
      case "deferred":
        return trouble(found.reason, startedAt, clock);
      case "no_such_domain":
        return noRoute(
          `the domain ${shipment.domain} takes no mail: it does not exist or has no address`,
          startedAt,
          clock,
        );
      case "null_mx":
        return noRoute(`the domain ${shipment.domain} takes no mail (null MX)`, startedAt, clock);
      case "hosts":
        return shipTo(
          pool,
          {
            key: destinationKey(found.hosts, port),
            hosts: found.hosts,
            port,
            tls: "opportunistic",
            ehloName,
          },
          shipment,
        );
    }
  };
}

/** The set of MX hosts: domains served by the same hosts share connections. */
function destinationKey(hosts: readonly MxHost[], port: number): string {
  return `mx:${[...hosts.map((host) => host.name)].sort().join(",")}:${port}`;
}

async function shipTo(pool: Pool, destination: Destination, shipment: Shipment): Promise<DeliveryReport> {
  const { mailFrom, rcptTo, raw, smtpUtf8 } = shipment;
  return toReport(await pool.deliver(destination, { mailFrom, rcptTo, raw, smtpUtf8 }));
}

function toReport(report: ClientReport): DeliveryReport {
  const { result, mx, ip, tls, transcript, startedAt, durationMs } = report;
  const facts = { mx, ip, tls, transcript, startedAt, durationMs };
  switch (result.kind) {
    case "trouble":
      return { ...facts, kind: "trouble", stage: result.stage, reason: result.reason };
    case "unsendable":
      return { ...facts, kind: "undeliverable", verdict: "failed", reason: result.text };
    case "reply": {
      const { stage, code, enhanced, text } = result;
      const custody = stage === "final" && code >= 200 && code <= 299;
      return { ...facts, kind: custody ? "accepted" : "refused", reply: { stage, code, enhanced, text } };
    }
  }
}

function trouble(reason: string, startedAt: number, clock: Clock): DeliveryReport {
  return { ...noFacts(startedAt, clock.now() - startedAt), kind: "trouble", stage: "dns", reason };
}

function noRoute(reason: string, startedAt: number, clock: Clock): DeliveryReport {
  return { ...noFacts(startedAt, clock.now() - startedAt), kind: "undeliverable", verdict: "hard", reason };
}
