import { createServer, type Server } from "node:http";
import Provider from "oidc-provider";
import { freePort } from "../redis.ts";

/** A real OpenID provider, whose login form takes any name. */
export interface TestProvider {
  issuer: string;
  /** What it claims about each name, in addition to `sub`. */
  people: Map<string, Record<string, unknown>>;
  stop(): void;
}

/**
 * Starts a provider that knows one client.
 * @param secret null: the client has none
 * @param host a name of this machine, by which browsers tell sites apart
 */
export async function startOpenIdProvider(
  redirectUri: string,
  clientId: string,
  secret: string | null,
  host = "127.0.0.1",
): Promise<TestProvider> {
  const port = freePort();
  const issuer = `http://${host}:${port}`;
  const people: TestProvider["people"] = new Map();
  const method = secret === null ? "none" : "client_secret_post";
  const client = {
    client_id: clientId,
    ...(secret === null ? {} : { client_secret: secret }),
    token_endpoint_auth_method: method,
    redirect_uris: [redirectUri],
  };
  const provider = new Provider(issuer, {
    clients: [client],
    claims: { openid: ["sub", "groups"], email: ["email", "email_verified"] },
    conformIdTokenClaims: true,
    cookies: { keys: ["a key of a test"] },
    findAccount: (_: unknown, name: string) => ({
      accountId: name,
      claims: () => ({ sub: name, ...people.get(name) }),
    }),
  });
  const server: Server = createServer(provider.callback());
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { issuer, people, stop: () => void server.close() };
}

let browsers = 0;

/** A browser: it keeps the cookies of each host, and has an address of its own, because sign-ins are limited for each. */
export class TestBrowser {
  readonly #address = `192.0.2.${++browsers % 250}`;
  readonly #cookies = new Map<string, Map<string, string>>();

  /** Loads a URL, without following a redirect. */
  async load(url: string, form?: Record<string, string>): Promise<Response> {
    const { host } = new URL(url);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { cookie, "x-forwarded-for": this.#address };
    const post = form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) };
    const answer = await fetch(url, { redirect: "manual", headers, ...post });
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      const at = pair.indexOf("=");
      jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
  }

  /** Cookies of a host, by name. */
  cookies(url: string): ReadonlyMap<string, string> {
    return this.#cookies.get(new URL(url).host) ?? new Map();
  }

  /** Signs in at the provider as a person of that name. Returns the URL that it leads back to. */
  async atProvider(url: string, name: string, back: string): Promise<string> {
    let next = url;
    // Authorization, login form, authorization, consent, authorization.
    for (let step = 0; step < 8; step++) {
      const answer = await this.load(next);
      const location = answer.headers.get("location");
      if (location === null) next = await this.#submit(next, await answer.text(), name);
      else next = new URL(location, next).href;
      if (next.startsWith(back)) return next;
    }
    throw new Error(`the provider did not lead back, but to ${next}`);
  }

  async #submit(url: string, html: string, name: string): Promise<string> {
    const prompt = /name="prompt" value="(\w+)"/.exec(html)?.[1];
    if (prompt === undefined) throw new Error(`no form at ${url}: ${html.slice(0, 500)}`);
    const action = /action="([^"]+)"/.exec(html)?.[1] ?? url;
    const answer = await this.load(new URL(action, url).href, { prompt, login: name, password: "x" });
    return new URL(answer.headers.get("location") ?? "", url).href;
  }
}
