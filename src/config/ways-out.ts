import { distinctAddresses, type Egress } from "../core/networks.ts";
import { DAY_MS } from "../core/time/units.ts";
import { isIp, type Kind, listFault, listOf } from "./kinds.ts";

const LANE = /^([\w.+:~@-]{1,260}):(\d{1,4})\/(\d{1,5})\/(\d{1,5}(?:\.\d{1,3})?)$/;
const LANE_FORM = "must be a comma list of name:connections/messages/rate, such as google:5/50/20";

/** Limits of lanes by their names. */
export const lanes: Kind<ReadonlyMap<string, { connections: number; messages: number; rate: number }>> = {
  fault(given) {
    const isLane = (item: string) => {
      const [, , connections, messages] = LANE.exec(item) ?? [];
      return Number(connections ?? 0) > 0 && Number(messages ?? 0) > 0;
    };
    return given === "" ? null : listFault(given, isLane, LANE_FORM);
  },
  read: (given) =>
    new Map(
      listOf(given).map((item) => {
        const [, name = "", connections, messages, rate] = LANE.exec(item) ?? [];
        const limits = { connections: Number(connections), messages: Number(messages), rate: Number(rate) };
        return [name, limits];
      }),
    ),
};

/** Maximum number of own addresses. */
const MAX_EGRESS = 64;
const EGRESS = /^([\d.]+|[\da-f:.]+)(?:=([a-z\d.-]{1,253}))?(?:@([a-z\d-]{1,32}))?$/i;
const EGRESS_FORM = `must be a comma list of at most ${MAX_EGRESS} items ip[=name][@pool], such as 203.0.113.5,203.0.113.6@bulk, each address once and one of them without a pool`;

function egressesOf(given: string): Egress[] {
  return listOf(given).flatMap((item) => {
    const [, ip = "", name = null, pool = null] = EGRESS.exec(item) ?? [];
    return isIp(ip) ? [{ ip: distinctAddresses([ip])[0] ?? ip, name, pool }] : [];
  });
}

const WARM_UP = /^(\S+):(\d{4}-\d{2}-\d{2})$/;
const WARM_UP_FORM = "must be a comma list of ip:date, such as 203.0.113.6:2026-03-01";

function firstDayOf(item: string): [ip: string, day: number] | null {
  const [, ip = "", date = ""] = WARM_UP.exec(item) ?? [];
  const at = Date.parse(date);
  const isDate = Number.isFinite(at) && new Date(at).toISOString().startsWith(date);
  return isIp(ip) && isDate ? [distinctAddresses([ip])[0] ?? ip, at / DAY_MS] : null;
}

/** First days of new addresses, in days since 1970. */
export const warmUps: Kind<ReadonlyMap<string, number>> = {
  fault: (given) =>
    given === "" ? null : listFault(given, (item) => firstDayOf(item) !== null, WARM_UP_FORM),
  read: (given) =>
    new Map(
      listOf(given)
        .map(firstDayOf)
        .filter((pair) => pair !== null),
    ),
};

/** Our own addresses that mail leaves from, each with its pool. */
export const egresses: Kind<readonly Egress[]> = {
  fault(given) {
    if (given === "") return null;
    const items = egressesOf(given);
    const isWhole = items.length === listOf(given).length && items.length <= MAX_EGRESS;
    const isDistinct = new Set(items.map(({ ip }) => ip)).size === items.length;
    return isWhole && isDistinct && items.some(({ pool }) => pool === null) ? null : EGRESS_FORM;
  },
  read: egressesOf,
};
