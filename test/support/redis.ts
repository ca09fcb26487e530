import { newFolder, removeFolder } from "./folder.ts";

/** A real Redis for one test file: its own port, its own folder, nothing kept on disk. */
export interface TestRedis {
  url: string;
  port: number;
  /** Ends the server at once, as a power cut would. */
  kill(): Promise<void>;
  /** Starts an empty server on the same port. */
  restart(): Promise<void>;
  /** Freezes the server: connections stay open, nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** One command, as `redis-cli` prints its answer. */
  command(...words: string[]): Promise<string>;
  stop(): Promise<void>;
}

type Server = Bun.Subprocess<"ignore", "pipe", "inherit">;

/** Ports tried before giving up: another process may take a free port between the look and the start. */
const PORT_TRIES = 5;

/** Ports below those that the system gives to outgoing connections, of which other tests make many meanwhile. */
const [FIRST_PORT, PORTS] = [12_000, 20_000];

/** A port nobody listens on just now. */
export function freePort(): number {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    }
  }
}

/** Starts a server and waits for the line that says it takes connections; null where it ended instead. */
async function launch(port: number, folder: string): Promise<Server | null> {
  const server = Bun.spawn(
    [
      "redis-server",
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder],
      ...["--save", "", "--appendonly", "no", "--daemonize", "no"],
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "inherit" },
  );
  const reader = server.stdout.getReader();
  const decoder = new TextDecoder();
  let seen = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return null;
    seen += decoder.decode(value, { stream: true });
    if (seen.includes("Ready to accept connections")) break;
  }
  // The pipe is drained for as long as the server lives: a full one would stop it.
  void (async () => {
    while (!(await reader.read()).done);
  })();
  return server;
}

/** Starts a Redis on a free port. Call `stop` when done; the end of the process stops it too. */
export async function startRedis(): Promise<TestRedis> {
  const folder = newFolder("redis");
  let server: Server | null = null;
  let port = 0;
  for (let tries = 0; server === null && tries < PORT_TRIES; tries++) {
    port = freePort();
    server = await launch(port, folder);
  }
  if (server === null) throw new Error("redis-server did not start");
  const killNow = (): void => server?.kill("SIGKILL");
  process.on("exit", killNow);
  const kill = async (): Promise<void> => {
    killNow();
    await server?.exited;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    async restart() {
      await kill();
      server = await launch(port, folder);
      if (server === null) throw new Error(`redis-server did not start again on port ${port}`);
    },
    freeze: () => server?.kill("SIGSTOP"),
    thaw: () => server?.kill("SIGCONT"),
    async command(...words) {
      const cli = Bun.spawn(["redis-cli", "-p", String(port), ...words], { stdout: "pipe" });
      return (await new Response(cli.stdout).text()).trim();
    },
    async stop() {
      await kill();
      process.off("exit", killNow);
      removeFolder(folder);
    },
  };
}
