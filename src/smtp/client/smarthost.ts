import type { Credentials, TlsMode } from "./delivery.ts";

/** A relay for all outgoing mail. */
export interface Smarthost {
  host: string;
  port: number;
  tls: TlsMode;
  implicitTls: boolean;
  auth?: Credentials;
}

/** RFC 6409 §3.1 and RFC 8314 §3.3. If `smtp:` has no port, 25 (RFC 5321). */
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "smtp:": 25, "smtps:": 465 };

/**
 * Parses `smtp(s)://user:pass@host:port?insecure=1`. With credentials, the certificate must be valid for the host, so
 * that no attacker gets the password; `insecure=1` turns that off.
 * @throws Error if the text is not such a URL; the message does not quote it, because it may contain a password
 */
export function parseSmarthost(text: string): Smarthost {
  const url = URL.canParse(text) ? new URL(text) : null;
  const defaultPort = DEFAULT_PORTS[url?.protocol ?? ""];
  if (url === null || defaultPort === undefined || url.hostname === "")
    throw new Error("the smarthost must be smtp://host:port or smtps://host:port");
  const insecure = url.searchParams.get("insecure") === "1";
  const auth = credentialsOf(url, insecure);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? defaultPort : Number(url.port),
    tls: auth === null || insecure ? "opportunistic" : "verified",
    implicitTls: url.protocol === "smtps:",
    ...(auth === null ? {} : { auth }),
  };
}

function credentialsOf(url: URL, insecure: boolean): Credentials | null {
  if (url.username === "") return null;
  try {
    return { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password), insecure };
  } catch {
    throw new Error("user and password of the smarthost must be percent-encoded");
  }
}
