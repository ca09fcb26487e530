import net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../src/core/time/clock.ts";
import { log } from "../../src/log.ts";
import type { Envelope, MailHandler } from "../../src/smtp/session/envelope.ts";
import { createListener, type Listener, type ListenerOptions } from "../../src/smtp/listener/listener.ts";
import { reply } from "../../src/smtp/session/reply.ts";
import { selfSignedCertificate } from "../../src/smtp/listener/self-signed.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

export const HOSTNAME = "mx.postrider.test";
export const TAKEN = reply(250, "2.0.0", "Taken");

/** A promise that a test resolves from outside. */
export function signal<T = void>(): { wait: Promise<T>; give: (value: T) => void } {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { wait: promise, give: resolve };
}

export interface Taken {
  envelope: Envelope;
  raw: Buffer;
}

export interface Server {
  port: number;
  clock: ManualClock;
  listener: Listener;
  taken: Taken[];
}

let certificate: ReturnType<typeof selfSignedCertificate> | null = null;

/** One certificate for all servers of a run, because making a key takes longer than most tests. */
function certificateOf(now: number): ReturnType<typeof selfSignedCertificate> {
  certificate ??= selfSignedCertificate(HOSTNAME, now);
  return certificate;
}

/**
 * A listener on a free port whose handler accepts everything unless told otherwise. It uses the manual clock of the
 * result unless another clock is given.
 */
export async function startServer(
  handler: Partial<MailHandler> = {},
  options: Partial<ListenerOptions> = {},
  other?: Clock,
): Promise<Server & AsyncDisposable> {
  const clock = manualClock();
  const taken: Taken[] = [];
  const whole: MailHandler = {
    recipient: async () => null,
    message: async (envelope, raw) => {
      taken.push({ envelope, raw: Buffer.from(raw) });
      return TAKEN;
    },
    ...handler,
  };
  const listener = createListener(
    { clock: other ?? clock, handler: whole, log: log("smtp") },
    {
      host: "127.0.0.1",
      port: 0,
      hostname: HOSTNAME,
      maxMessageBytes: 1024 * 1024,
      maxRecipients: 100,
      maxConnections: 100,
      maxConnectionsPerIp: 10,
      proxies: [],
      tls: await certificateOf(clock.now()),
      ...options,
    },
  );
  const { port } = await listener.start();
  const close = async () => {
    const stopped = listener.stop(0);
    clock.advance(0);
    await stopped;
  };
  return { port, clock, listener, taken, [Symbol.asyncDispose]: close };
}

/** Ticks of the event loop without change after which a connection counts as quiet. */
const QUIET_TURNS = 20;

/** A client that sends any octets and reads whole replies. */
export class Client {
  #socket: net.Socket;
  #text = "";
  #ended = false;
  #wake: () => void = () => {};

  private constructor(socket: net.Socket) {
    this.#socket = socket;
    this.#listen();
  }

  /** Connects and reads the greeting, unless told to leave it unread. */
  static async connect(port: number, greeting = true, host = "127.0.0.1"): Promise<Client> {
    const socket = net.connect({ port, host, allowHalfOpen: true });
    const connected = signal();
    socket.once("connect", () => connected.give());
    await connected.wait;
    const client = new Client(socket);
    if (greeting) await client.reply();
    return client;
  }

  #listen(): void {
    const end = () => {
      this.#ended = true;
      this.#wake();
    };
    this.#socket.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1");
      this.#wake();
    });
    this.#socket.on("end", end).on("close", end).on("error", end);
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const woken = signal();
    this.#wake = woken.give;
    await woken.wait;
    return true;
  }

  /** Returns the next whole reply with its CRLFs, or "" if the server has closed before it. */
  async reply(): Promise<string> {
    for (;;) {
      const match = /^(?:\d{3}-[^\r]*\r\n)*\d{3} [^\r]*\r\n/.exec(this.#text);
      if (match !== null) {
        this.#text = this.#text.slice(match[0].length);
        return match[0];
      }
      if (!(await this.#more())) return "";
    }
  }

  /** Returns whether octets have arrived that were not read yet. */
  get heard(): boolean {
    return this.#text !== "" || this.#ended;
  }

  /** Codes of the next `count` replies. */
  async codes(count: number): Promise<string[]> {
    const codes: string[] = [];
    while (codes.length < count) codes.push((await this.reply()).slice(0, 3));
    return codes;
  }

  /** Reads everything until the server closes. */
  async rest(): Promise<string> {
    while (await this.#more());
    return this.#text;
  }

  send(octets: string | Buffer): void {
    this.#socket.write(typeof octets === "string" ? Buffer.from(octets, "latin1") : octets);
  }

  /** Sends one line, reads one reply. */
  async say(line: string): Promise<string> {
    this.send(`${line}\r\n`);
    return await this.reply();
  }

  /** EHLO, MAIL, RCPT, DATA up to the 354. */
  async startMessage(): Promise<void> {
    this.send("EHLO client.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n");
    const codes = await this.codes(4);
    if (codes.join() !== "250,250,250,354") throw new Error(`the message did not start: ${codes.join()}`);
  }

  /** Does the TLS handshake on the open connection. */
  async secure(): Promise<tls.TLSSocket> {
    this.#socket.removeAllListeners();
    const secure = tls.connect({ socket: this.#socket, rejectUnauthorized: false });
    const done = Promise.withResolvers<void>();
    secure.once("secureConnect", done.resolve).once("error", done.reject);
    await done.promise;
    this.#socket = secure;
    this.#listen();
    return secure;
  }

  /**
   * Waits until no more sent octets leave: they have arrived, or the server has stopped reading. Returns the number
   * of octets that could not leave.
   */
  async quiet(): Promise<number> {
    let left = -1;
    for (let same = 0; same < QUIET_TURNS; same++) {
      if (this.#socket.writableLength !== left) same = 0;
      left = this.#socket.writableLength;
      await Bun.sleep(1);
    }
    return left;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes our side and continues to read. */
  halfClose(): void {
    this.#socket.end();
  }

  /** Resets the connection. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
