import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { removeFolder } from "./folder.ts";
import { type Connection, openConnection } from "./hrana-server-connection.ts";
import { HttpRefusal, type PipelineBody, Streams } from "./hrana-server-streams.ts";
import { Log } from "./sync-server-log.ts";
import { grpcAnswer, noFrames } from "./sync-server-grpc.ts";
import { syncAnswer } from "./sync-server.ts";

/** Start options of a server, given as JSON in its first argument. */
export interface ServerSettings {
  folder: string;
  port: number;
  token: string | null;
  idleMs: number;
  fineCodes: boolean;
  /** How replicas are served: over plain HTTP as Turso Cloud does, or in gRPC as sqld does. */
  sync: "http" | "grpc";
}

/** Orders that a test can give a server for the requests that follow. */
export interface Trouble {
  /** Number of batches that are committed but get no reply. */
  loseReplies?: number;
  /** Delay of each reply in milliseconds. */
  delayMs?: number;
  /** If true, replicas get no frames, as while sqld makes a snapshot of its log. */
  noFrames?: boolean;
  /** Status that pipelines get instead of being run. */
  status?: { code: number; times: number };
}

/** `open` adds an empty database on its own port. */
export type Order = { trouble: Trouble } | { counts: true } | { open: string };
export type Report = { port: number } | { counts: Record<string, number> };

const settings: ServerSettings = JSON.parse(process.argv[2] ?? "{}");
const counts = new Map<string, number>();
const held: Connection[] = [];
const trouble = { loseReplies: 0, delayMs: 0, noFrames: false, status: { code: 0, times: 0 } };
serve("primary", settings.port);

process.on("message", (order: Order) => {
  if ("trouble" in order) Object.assign(trouble, order.trouble);
  else if ("open" in order) serve(order.open, 0);
  else process.send?.({ counts: Object.fromEntries(counts) } satisfies Report);
});
process.on("disconnect", () => {
  removeFolder(settings.folder);
  process.exit(0);
});

interface Served {
  streams: Streams;
  log: Log;
}

/** Serves a database file over HTTP, and reports the port. */
function serve(name: string, port: number): void {
  const path = join(settings.folder, `${name}.db`);
  const { idleMs, fineCodes } = settings;
  const open = () => openConnection(path, fineCodes);
  const served = { streams: new Streams(open, { idleMs, fineCodes }, count), log: new Log(path) };
  // The file exists in WAL mode before the first replica asks for it. It stays open while it is served: if the last
  // connection closed, SQLite would delete the log.
  held.push(open());
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      void (async () => {
        if (trouble.delayMs > 0) await Bun.sleep(trouble.delayMs);
        answer(served, request, response, Buffer.concat(chunks));
      })();
    });
  });
  server.listen(port, "127.0.0.1", () => {
    const address = server.address();
    if (address !== null && typeof address === "object")
      process.send?.({ port: address.port } satisfies Report);
  });
}

function count(name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function answer(served: Served, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const { method = "GET", url = "/" } = request;
  if (settings.token !== null && request.headers.authorization !== `Bearer ${settings.token}`)
    return void reply(response, 401, { error: "Unauthorized: `The JWT is invalid`" });
  const called = settings.sync === "grpc" ? grpcAnswer(served.log, url, body) : null;
  if (called !== null) {
    count(called.name);
    const body = trouble.noFrames && called.name === "BatchLogEntries" ? noFrames() : called.body;
    return void reply(response, 200, body, "application/grpc-web");
  }
  const synced = settings.sync === "http" ? syncAnswer(served.log, method, url) : null;
  if (synced !== null) {
    count(synced.name);
    return void reply(response, synced.status, synced.body);
  }
  if (method === "GET" && /^\/v[23]$/.test(url)) return void reply(response, 200, "Hello, this is HTTP API");
  if (method === "POST" && /^\/v[23]\/pipeline$/.test(url)) return void pipeline(served, response, body);
  count(`not found: ${method} ${url}`);
  return void reply(response, 404, "not found");
}

function pipeline({ streams }: Served, response: ServerResponse, body: Buffer): void {
  count("pipeline");
  if (trouble.status.times > 0) {
    trouble.status.times--;
    return void reply(response, trouble.status.code, "upstream");
  }
  try {
    const asked: PipelineBody = JSON.parse(body.toString("utf8"));
    const answered = streams.pipeline(asked);
    if (trouble.loseReplies > 0 && asked.requests.some(({ type }) => type === "batch")) {
      trouble.loseReplies--;
      count("reply lost");
      response.socket?.destroy();
      return;
    }
    reply(response, 200, answered);
  } catch (error) {
    if (error instanceof HttpRefusal) return void reply(response, error.status, error.body);
    reply(response, 400, String(error));
  }
}

function reply(
  response: ServerResponse,
  status: number,
  body: Buffer | object | string,
  binary = "application/octet-stream",
): void {
  const [type, bytes] = Buffer.isBuffer(body)
    ? [binary, body]
    : typeof body === "string"
      ? ["text/plain", Buffer.from(body)]
      : ["application/json", Buffer.from(JSON.stringify(body))];
  response.writeHead(status, { "content-type": type, "content-length": bytes.length });
  response.end(bytes);
}
