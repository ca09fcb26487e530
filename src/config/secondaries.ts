import { isIP } from "node:net";
import { domainNames, isNameServer, type Kind, listFault, listOf, withoutBrackets } from "./kinds.ts";

/** Maximum number of secondaries and of their names: each is in the NS records of every zone. */
const MAX_SECONDARIES = 8;
/** Names of keys leave room for an answer in every datagram. */
const KEY_NAME = /^[a-z0-9_]([a-z0-9._-]{0,61}[a-z0-9_])?$/i;
/** At least 16 octets. */
const SECRET = /^[A-Za-z0-9+/]{22,}={0,2}$/;
const DNS_PORT = 53;

/** A name server that copies our zones. */
interface Secondary {
  ip: string;
  port: number;
  keyName: string;
}

/** A key that we share with secondaries. */
interface TsigKey {
  name: string;
  secret: Uint8Array;
}

/** Secondaries as `ip[:port]#keyname`. */
export const secondaries: Kind<readonly Secondary[]> = {
  fault: (given) =>
    listFault(
      given,
      (item) => {
        const [address = "", key = "", ...more] = item.split("#");
        return isNameServer(address) && isKeyName(key) && more.length === 0;
      },
      `must be a comma list of at most ${MAX_SECONDARIES} entries ip#keyname, with the port if that is not 53 (ip:port#keyname, [v6]:port#keyname)`,
      MAX_SECONDARIES,
    ),
  read: (given) => listOf(given).map(secondaryOf),
};

function secondaryOf(item: string): Secondary {
  const [address = "", key = ""] = item.split("#");
  const keyName = key.toLowerCase();
  if (isIP(address) !== 0) return { ip: address, port: DNS_PORT, keyName };
  const [, ip = "", port = DNS_PORT] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(address) ?? [];
  return { ip: withoutBrackets(ip), port: Number(port), keyName };
}

/** Keys as `name:hmac-sha256:<base64>`. */
export const tsigKeys: Kind<readonly TsigKey[]> = {
  fault(given) {
    const keys = listOf(given).map((item) => item.split(":"));
    const fits = ([name = "", algorithm, secret = "", ...more]: readonly string[]) =>
      isKeyName(name) &&
      algorithm?.toLowerCase() === "hmac-sha256" &&
      SECRET.test(secret) &&
      more.length === 0;
    if (keys.length === 0 || !keys.every(fits))
      return "must be a comma list of name:hmac-sha256:secret, each secret at least 16 octets in base64 (openssl rand -base64 32)";
    const names = new Set(keys.map(([name = ""]) => name.toLowerCase()));
    return names.size === keys.length ? null : "must name each key once";
  },
  read: (given) =>
    listOf(given).map((item) => {
      const [name = "", , secret = ""] = item.split(":");
      return { name: name.toLowerCase(), secret: Buffer.from(secret, "base64") };
    }),
};

const hostNames = domainNames(MAX_SECONDARIES, "host names");
export const secondaryNames: Kind<readonly string[]> = {
  ...hostNames,
  read: (given) => [...new Set(hostNames.read(given))],
};

function isKeyName(text: string): boolean {
  return KEY_NAME.test(text) && !text.includes("..");
}
