import type { Clock } from "../../core/time/clock.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import { type AccountKey, bindExternal, type ExternalAccount } from "./jws.ts";
import {
  type Authorization,
  type Directory,
  type Order,
  readAuthorization,
  readDirectory,
  readOrder,
  readWindow,
  type RenewalWindow,
} from "./objects.ts";
import { AcmeError } from "./problem.ts";
import { createTransport, type TransportDeps } from "./signed-requests.ts";

/** Time for which a directory is kept. CAs change them rarely, and ask for them to be read again at times. */
const DIRECTORY_FRESH_MS = HOUR_MS;

/** The facts about a new account that the CA gets. */
export interface AccountWish {
  email: string;
  external: ExternalAccount | null;
}

/** The facts about a new order that the CA gets. */
export interface OrderWish {
  names: readonly string[];
  /** The certificate that this one replaces (RFC 9773 §5); null for a first one. */
  replaces: string | null;
}

/** A client of one CA (RFC 8555). All functions throw AcmeError. */
export interface AcmeClient {
  directory(): Promise<Directory>;
  /** Milliseconds by which our clock is ahead of the CA's; null if the CA does not name its time. */
  clockAhead(): number | null;
  /** Returns the URL of the key's account, which is made if there is none. It accepts the CA's terms of service. */
  register(key: AccountKey, wish: AccountWish): Promise<string>;
  /** Changes the address that the CA writes to. */
  updateContact(account: AccountKey, email: string): Promise<void>;
  /** Closes an account for good (RFC 8555 §7.3.6). */
  deactivate(account: AccountKey): Promise<void>;
  newOrder(account: AccountKey, wish: OrderWish): Promise<Order>;
  order(account: AccountKey, url: string): Promise<Order>;
  authorization(account: AccountKey, url: string): Promise<Authorization>;
  /** Says that the answer to a challenge can be looked up. */
  answerChallenge(account: AccountKey, url: string): Promise<void>;
  /** Hands in the request for the certificate. @param request in DER */
  finalize(account: AccountKey, url: string, request: Buffer): Promise<void>;
  /** Returns the chain in PEM, our certificate first. */
  download(account: AccountKey, url: string): Promise<string>;
  /** Returns when the CA wants a certificate to be renewed (RFC 9773 §4); null if the CA does not tell. */
  renewalWindow(id: string): Promise<RenewalWindow | null>;
}

/** Creates a client. It opens no connection until it is used. */
export function createAcmeClient(deps: TransportDeps & { clock: Clock }, directoryUrl: string): AcmeClient {
  let known: { at: number; directory: Directory } | null = null;
  const transport = createTransport(deps, async () => (await directory()).newNonce);
  const { post } = transport;

  async function directory(): Promise<Directory> {
    const now = deps.clock.elapsed();
    if (known !== null && now - known.at < DIRECTORY_FRESH_MS) return known.directory;
    known = { at: now, directory: readDirectory((await transport.get(directoryUrl)).json) };
    return known.directory;
  }

  return {
    directory,
    clockAhead: transport.clockAhead,
    async register(key, { email, external }) {
      const { newAccount } = await directory();
      const { location } = await post({ ...key, url: null }, newAccount, {
        termsOfServiceAgreed: true,
        contact: [`mailto:${email}`],
        ...(external === null ? {} : { externalAccountBinding: bindExternal(external, key.jwk, newAccount) }),
      });
      return urlIn(location, "account");
    },
    async updateContact(account, email) {
      await post(account, account.url ?? "", { contact: [`mailto:${email}`] });
    },
    async deactivate(account) {
      await post(account, account.url ?? "", { status: "deactivated" });
    },
    async newOrder(account, { names, replaces }) {
      const { newOrder, renewalInfo } = await directory();
      const identifiers = names.map((value) => ({ type: "dns", value }));
      const predecessor = replaces === null || renewalInfo === null ? {} : { replaces };
      const answer = await post(account, newOrder, { identifiers, ...predecessor });
      return readOrder(urlIn(answer.location, "order"), answer);
    },
    order: async (account, url) => readOrder(url, await post(account, url, null)),
    authorization: async (account, url) => readAuthorization(await post(account, url, null)),
    async answerChallenge(account, url) {
      await post(account, url, {});
    },
    async finalize(account, url, request) {
      await post(account, url, { csr: request.toString("base64url") });
    },
    download: async (account, url) => (await post(account, url, null)).text,
    async renewalWindow(id) {
      const { renewalInfo } = await directory();
      if (renewalInfo === null) return null;
      return readWindow(await transport.get(`${renewalInfo.replace(/\/$/, "")}/${id}`));
    },
  };
}

function urlIn(location: string | null, what: string): string {
  if (location === null) throw new AcmeError(`the CA names no URL for the ${what}`);
  return location;
}
