import { newFolder, removeFolder } from "./folder.ts";

/** A real Redis for one test file: its own port, its own folder, nothing kept on disk. */
export interface TestRedis {
  url: string;
  port: number;
  /** Kills the server at once, as a power cut would. */
  kill(): Promise<void>;
  /** Starts an empty server on the same port. */
  restart(): Promise<void>;
  /** Freezes the server: connections stay open and get no answers. */
  freeze(): void;
  thaw(): void;
  /** Runs one command and returns its answer as `redis-cli` prints it. */
  command(...words: string[]): Promise<string>;
  stop(): Promise<void>;
}

/** The address of a server. */
export interface RedisPlace {
  /** Address that it listens on. */
  host: string;
  /** Words before its command, for a namespace of the network. */
  inside: readonly string[];
}

const HERE: RedisPlace = { host: "127.0.0.1", inside: [] };

type Server = Bun.Subprocess<"ignore", "pipe", "inherit">;

/** Ports tried before giving up. Another process may take a free port before the server starts. */
const PORT_TRIES = 5;

/**
 * Ports below the range for outgoing connections, of which other tests make many. Test processes that run side by side have
 * neighbouring ids, so each has a share that no other takes a port from.
 */
const [FIRST_PORT, SHARES, SHARE] = [12_000, 200, 100];

let taken = 0;

/** Returns a port on which no process listens now, each time another one. */
export function freePort(): number {
  for (;;) {
    const port = FIRST_PORT + (process.pid % SHARES) * SHARE + (taken++ % SHARE);
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    }
  }
}

/** Starts a server and waits until it says that it accepts connections. Resolves to null if it ends instead. */
async function launch(port: number, folder: string, { host, inside }: RedisPlace): Promise<Server | null> {
  const server = Bun.spawn(
    [
      ...inside,
      "redis-server",
      "--port",
      String(port),
      "--bind",
      host,
      "--protected-mode",
      "no",
      "--dir",
      folder,
      "--save",
      "",
      "--appendonly",
      "no",
      "--daemonize",
      "no",
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
  // Drains the pipe while the server lives: a full pipe would stop it.
  void (async () => {
    while (!(await reader.read()).done);
  })();
  return server;
}

/** Starts a Redis on a free port. Call `stop` when done; the end of the process also stops it. */
export async function startRedis(place = HERE): Promise<TestRedis> {
  const folder = newFolder("redis");
  let server: Server | null = null;
  let port = 0;
  for (let tries = 0; server === null && tries < PORT_TRIES; tries++) {
    port = freePort();
    server = await launch(port, folder, place);
  }
  if (server === null) throw new Error("redis-server did not start");
  const killNow = (): void => server?.kill("SIGKILL");
  process.on("exit", killNow);
  const kill = async (): Promise<void> => {
    killNow();
    await server?.exited;
  };
  return {
    url: `redis://${place.host}:${port}`,
    port,
    kill,
    async restart() {
      await kill();
      server = await launch(port, folder, place);
      if (server === null) throw new Error(`redis-server did not start again on port ${port}`);
    },
    freeze: () => server?.kill("SIGSTOP"),
    thaw: () => server?.kill("SIGCONT"),
    async command(...words) {
      const cli = Bun.spawn(["redis-cli", "-h", place.host, "-p", String(port), ...words], {
        stdout: "pipe",
      });
      return (await new Response(cli.stdout).text()).trim();
    },
    async stop() {
      await kill();
      process.off("exit", killNow);
      removeFolder(folder);
    },
  };
}
