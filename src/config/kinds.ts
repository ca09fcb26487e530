import { isIP } from "node:net";
import { normalizeAddress, normalizeDomain } from "../core/addresses.ts";
import { QUOTA_PLANS } from "../core/quotas.ts";
import { distinctAddresses, isNetwork, MAX_DNS_SERVERS } from "../core/networks.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../core/time/units.ts";

/** A kind of value that a setting may have: how its text is checked, and what is read from it. */
export interface Kind<Value> {
  /** Returns what is wrong with a value, as in "PORT=x must be …"; null if it is fine. */
  fault(text: string): string | null;
  /** Reads a value without faults. */
  read(text: string): Value;
  /** True if the text may hold a password, as a URL may. */
  mayHoldCredentials?: true;
}

/** Any string that is not empty. */
export const text: Kind<string> = {
  fault: (given) => (given.length > 0 ? null : "must not be empty"),
  read: (given) => given,
};

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number): Kind<number> {
  return {
    fault(given) {
      const value = /^\d{1,12}$/.test(given) ? Number(given) : Number.NaN;
      return value >= min && value <= max ? null : `must be a whole number from ${min} to ${max}`;
    },
    read: Number,
  };
}

/** A TCP or UDP port; 0 lets the system choose one. */
export const port = integer(0, 65_535);

/** A number of things: at least one. */
export const count = integer(1, 1_000_000_000);

/** 0 or 1. */
export const flag: Kind<boolean> = {
  fault: (given) => (given === "0" || given === "1" ? null : "must be 0 or 1"),
  read: (given) => given === "1",
};

/** One of a fixed set of words. */
export function choice<const Word extends string>(of: readonly Word[]): Kind<Word> {
  return {
    fault: (given) => (isOneOf(of, given) ? null : `must be one of ${of.join(", ")}`),
    read: (given) => of.find((word) => word === given) ?? unreadable(given),
  };
}

/** Any of a fixed set of words. */
export function choices<const Word extends string>(of: readonly Word[]): Kind<ReadonlySet<Word>> {
  return {
    fault: (given) =>
      listFault(given, (item) => isOneOf(of, item), `must be a comma list of ${of.join(", ")}`),
    read: (given) => new Set(listOf(given).flatMap((item) => of.find((word) => word === item) ?? [])),
  };
}

/** A share in percent, with up to two decimals. */
export const percent: Kind<number> = {
  fault: (given) =>
    /^\d{1,3}(?:\.\d{1,2})?$/.test(given) && Number(given) <= 100 ? null : "must be a number from 0 to 100",
  read: Number,
};

/** A duration in seconds, with up to three decimals. */
export const seconds: Kind<number> = {
  fault: (given) => (isSeconds(given) ? null : "must be a number of seconds"),
  read: Number,
};

/** A time between two of something, such as `12h` or `1d`, in milliseconds; `off` is 0. */
export const interval: Kind<number> = {
  fault: (given) =>
    /^(?:off|[1-9]\d{0,3}[mhd])$/.test(given)
      ? null
      : "must be off, or minutes, hours or days, such as 12h or 1d",
  read: (given) =>
    given === "off" ? 0 : Number.parseInt(given, 10) * (INTERVAL_UNITS[given.slice(-1)] ?? 0),
};
const INTERVAL_UNITS: Readonly<Record<string, number>> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/** A duration of more than nothing. */
export const positiveSeconds: Kind<number> = {
  fault: (given) => seconds.fault(given) ?? (Number(given) === 0 ? "must be more than 0 seconds" : null),
  read: Number,
};

/** Durations in seconds. */
export const secondsList: Kind<readonly number[]> = {
  fault: (given) => listFault(given, isSeconds, "must be a comma list of seconds"),
  read: (given) => listOf(given).map(Number),
};

const QUOTA_FORM =
  "must be three numbers with commas, for the plans free, pro and unlimited; none is no limit";

/** The most that each plan allows of a resource: three whole numbers, or `none`. */
export const quota: Kind<string> = {
  fault: (given) =>
    listOf(given).length === QUOTA_PLANS.length && listOf(given).every(isLimit) ? null : QUOTA_FORM,
  read: (given) => given,
};

function isLimit(given: string): boolean {
  return given === "none" || /^\d{1,15}$/.test(given);
}

/** A URL with one of some schemes, each written with its colon. */
export function url(...schemes: readonly string[]): Kind<string> {
  return { fault: (given) => urlFault(schemes, given), read: (given) => given, mayHoldCredentials: true };
}

/** A URL that paths are appended to. With its own slash an object store would look for a bucket without a name. */
export function baseUrl(...schemes: readonly string[]): Kind<string> {
  return { ...url(...schemes), read: withoutFinalSlashes };
}

/** A URL that links in mail begin with: read as they hold it, encoded and in ASCII. */
export function linkBase(...schemes: readonly string[]): Kind<string> {
  return { ...url(...schemes), read: (given) => withoutFinalSlashes(new URL(given).href) };
}

/** A domain name of at most `maxOctets`. Read in lower case and A-labels. */
export function domain(maxOctets: number): Kind<string> {
  return {
    fault(given) {
      const name = normalizeDomain(given);
      return name !== null && name.length <= maxOctets
        ? null
        : `must be a domain name of at most ${maxOctets} octets`;
    },
    read: (given) => normalizeDomain(given) ?? unreadable(given),
  };
}

/** Maximum number of domain names in one setting. */
const MAX_DOMAINS = 100;

/** At most `max` names, read in lower case and A-labels. `what` says in errors what they name. */
export function domainNames(max: number, what: string): Kind<readonly string[]> {
  return {
    fault: (given) =>
      listFault(
        given,
        (item) => normalizeDomain(item) !== null,
        `must be a comma list of at most ${max} ${what}`,
        max,
      ),
    read: (given) => listOf(given).flatMap((item) => normalizeDomain(item) ?? []),
  };
}

export const domains = domainNames(MAX_DOMAINS, "domain names");

/** An address or name to listen on. IPv6 may be written in brackets (RFC 3986 §3.2.2); it is read without them. */
export const host: Kind<string> = {
  fault: (given) =>
    isIP(withoutBrackets(given)) !== 0 || isHostName(given) ? null : "must be an IP address or a host name",
  read: withoutBrackets,
};

export const email: Kind<string> = {
  fault: (given) => (normalizeAddress(given) !== null ? null : "must be an email address"),
  read: (given) => normalizeAddress(given) ?? unreadable(given),
};

/** Resolvers, each an address with or without a port. */
export const nameServers: Kind<readonly string[]> = {
  fault: (given) =>
    listFault(
      given,
      isNameServer,
      `must be a comma list of at most ${MAX_DNS_SERVERS} IP addresses, each with its port if that is not 53 (ip:port, [v6]:port)`,
      MAX_DNS_SERVERS,
    ),
  read: listOf,
};

/** Addresses and networks, as `address/bits`. */
export const networks: Kind<readonly string[]> = {
  fault: (given) =>
    listFault(given, isNetwork, "must be a comma list of IP addresses and networks (address/bits)"),
  read: listOf,
};

/**
 * Maximum number of addresses in one setting. All of them are in one SPF record, which must fit a datagram (RFC
 * 7208 §3.4).
 */
const MAX_IPS = 16;

/** Addresses, read without doubles. */
export const ips: Kind<readonly string[]> = {
  fault: (given) =>
    listFault(given, isIp, `must be a comma list of at most ${MAX_IPS} IP addresses`, MAX_IPS),
  read: (given) => distinctAddresses(listOf(given)),
};

/** Printable characters, enough of them that an attacker cannot guess the secret. */
export function secretText(minLength: number): Kind<string> {
  const kind = "printable ASCII without spaces or line breaks";
  const wanted = minLength === 1 ? kind : `at least ${minLength} characters of ${kind}`;
  const fits = (given: string): boolean => given.length >= minLength && /^[\x21-\x7e]+$/.test(given);
  return {
    fault: (given) => text.fault(given) ?? (fits(given) ? null : `must be ${wanted}`),
    read: (given) => given,
  };
}

/** A key in base64url. Some authorities hand it out in standard base64 or with padding. */
export const base64Url: Kind<string> = {
  fault: (given) => (/^[A-Za-z0-9+/_-]{16,}={0,2}$/.test(given) ? null : "must be a key in base64url"),
  read: (given) => given.replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_"),
};

/** Returns the items of a comma list, without the spaces around them. */
export function listOf(given: string): string[] {
  return given
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item.length > 0);
}

/** Returns an address as sockets take it. */
export function withoutBrackets(given: string): string {
  return given.replace(/^\[(.*:.*)\]$/, "$1");
}

function withoutFinalSlashes(given: string): string {
  return given.replace(/\/+$/, "");
}

function unreadable(given: string): never {
  throw new Error(`read before it was checked: ${given}`);
}

/** Returns true for a host name. Unlike a domain, it may hold underscores anywhere, as names in a compose file do. */
function isHostName(given: string): boolean {
  return /^[!-~]+$/.test(given) && normalizeDomain(given.replaceAll("_", "x")) !== null;
}

function isOneOf(words: readonly string[], given: string): boolean {
  return words.includes(given);
}

/** Returns the complaint unless the text is a comma list of one item to `most`, all of which fit. */
export function listFault(
  given: string,
  fits: (item: string) => boolean,
  complaint: string,
  most = Number.POSITIVE_INFINITY,
): string | null {
  const items = listOf(given);
  return items.length > 0 && items.length <= most && items.every(fits) ? null : complaint;
}

/** Returns whether the text is an IP address. */
export function isIp(given: string): boolean {
  return isIP(given) !== 0 && !given.includes("%");
}

/** Returns true for an address, alone or with its port, as `net/dns/servers` reads it. */
export function isNameServer(given: string): boolean {
  if (isIP(given) !== 0) return true;
  const [, v6, v4, number = "53"] = /^(?:\[([^\]]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(given) ?? [];
  return (
    isIP(v6 ?? v4 ?? "") === (v6 === undefined ? 4 : 6) && Number(number) >= 1 && Number(number) <= 65535
  );
}

function isSeconds(given: string): boolean {
  return /^\d{1,9}(\.\d{1,3})?$/.test(given);
}

/** Schemes whose URL may name no host: a file has none, and Redis is on this machine by default. */
const HOSTLESS: ReadonlySet<string> = new Set(["file:", "redis:", "rediss:"]);

function urlFault(schemes: readonly string[], given: string): string | null {
  const parsed = URL.canParse(given) ? new URL(given) : null;
  if (parsed === null || !schemes.includes(parsed.protocol))
    return `must be a URL that starts with ${schemes.join(" or ")}`;
  if (parsed.hostname === "" && !HOSTLESS.has(parsed.protocol))
    return `has no host after ${parsed.protocol}//`;
  // A URL parser skips these, but code that takes the text as it is does not.
  if (/^\s|[\t\r\n]|\s$/.test(given)) return "must hold no line ends, tabs, or spaces around it";
  const start = HOSTLESS.has(parsed.protocol) ? parsed.protocol : `${parsed.protocol}//`;
  if (!given.startsWith(start)) return `must begin with ${start}`;
  if (/^file:(?:\/*|:memory:)$/.test(given)) return "names no file";
  if (parsed.protocol === "file:" && !["", "localhost"].includes(parsed.hostname))
    return "names a file of another machine: an absolute path takes three slashes";
  // libSQL would take the whole as the name of a file.
  return /^file:.*[?#]/.test(given) ? "must end with the file: it takes no parameters" : null;
}
