import { join } from "node:path";
import { builtProgram } from "./built-program.ts";
import { freePort } from "./redis.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

/** One of several processes that make up a service. */
export interface RoleProcess {
  pid: number;
  url: string;
  smtpPort: number;
  /** Its output so far. */
  output(): { stdout: string; stderr: string };
  /** Kills it at once, as a power cut would. */
  kill(): Promise<void>;
  /** Sends SIGHUP, which makes it reload its certificate. */
  reload(): void;
  /** Sends SIGTERM; resolves with the exit code. */
  terminate(): Promise<number>;
  /** Resolves when it has ended by itself. */
  exited(): Promise<number>;
}

/**
 * Starts a process with these settings. Resolves when it says that it runs, and rejects if it ends instead.
 * @param preload a script that runs in it first. Then the sources run instead of the built program
 * @param inside words before its command, for a namespace of the network
 */
export async function startRole(
  env: Record<string, string>,
  preload?: string,
  inside: readonly string[] = [],
): Promise<RoleProcess> {
  const [port, smtpPort] = [env.PORT ?? freePort(), Number(env.SMTP_PORT ?? freePort())];
  const command =
    preload === undefined ? [await builtProgram()] : [process.execPath, "--preload", preload, MAIN];
  const child = Bun.spawn([...inside, ...command, "serve"], {
    cwd: env.DATA_DIR ?? "/",
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: {
      PATH: Bun.env.PATH ?? "",
      HOST: "127.0.0.1",
      PORT: String(port),
      SMTP_HOST: "127.0.0.1",
      SMTP_PORT: String(smtpPort),
      SERVICE_DOMAIN: "mail.test",
      ALLOW_PRIVATE_MX: "1",
      ALLOW_PRIVATE_WEBHOOKS: "1",
      ...env,
    },
  });
  const killNow = (): void => child.kill("SIGKILL");
  process.on("exit", killNow);
  void child.exited.then(() => process.off("exit", killNow));
  const { promise: running, resolve } = Promise.withResolvers<void>();
  const said = { stdout: "", stderr: "" };
  const drain = async (stream: ReadableStream<Uint8Array>, name: "stdout" | "stderr"): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      said[name] += decoder.decode(chunk, { stream: true });
      if (name === "stdout" && said.stdout.includes("Postrider is running.")) resolve();
    }
  };
  const drained = Promise.all([drain(child.stdout, "stdout"), drain(child.stderr, "stderr")]);
  const ended = child.exited.then(async (code) => {
    await drained;
    throw new Error(`a process of ROLES=${env.ROLES ?? ""} ended with ${code}: ${said.stderr}`);
  });
  // Once it runs, the test handles its end.
  ended.catch(() => undefined);
  await Promise.race([running, ended]);
  return {
    pid: child.pid,
    url: `http://${env.HOST ?? "127.0.0.1"}:${port}`,
    smtpPort,
    output: () => ({ ...said }),
    async kill() {
      killNow();
      await child.exited;
    },
    reload: () => child.kill("SIGHUP"),
    async terminate() {
      child.kill("SIGTERM");
      return child.exited;
    },
    exited: () => child.exited,
  };
}

export interface Called {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API shows.
  body: any;
}

/** Calls the API of a process for its default project. */
export async function callRole(
  { url }: Pick<RoleProcess, "url">,
  key: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Called> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      "x-service-product": "default",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}
