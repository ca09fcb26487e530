/** Sends one message over one SMTP session, as a client of a run. */

/** Result of a message: the last reply, or that there was none. */
export interface MailOutcome {
  /** Reply code of the command that ended it; null if the connection broke or the reply took too long. */
  code: number | null;
  /** The reply's text, or the failure. */
  text: string;
  /** Id of the message that a 250 names. */
  id: string | null;
}

/** Time limit, after which the message is tried again. */
const ANSWER_LIMIT_MS = 60_000;
const ID = /msg_[0-9a-z]{26}/;

interface Talk {
  heard: string;
  unsent: Uint8Array;
  step: number;
}

/**
 * Sends a message to a port of this machine, or of another host, and hangs up. `bytes` has CRLF line ends, including the last one. Dots are stuffed here (RFC 5321
 * §4.5.2).
 */
export function bringMail(
  at: number | { host: string; port: number },
  from: string,
  to: string | readonly string[],
  bytes: string,
  limitMs = ANSWER_LIMIT_MS,
): Promise<MailOutcome> {
  const { promise, resolve } = Promise.withResolvers<MailOutcome>();
  const steps = [
    "EHLO client.test\r\n",
    `MAIL FROM:<${from}>\r\n`,
    ...[to].flat().map((address) => `RCPT TO:<${address}>\r\n`),
    "DATA\r\n",
    `${bytes.replace(/^\./gm, "..")}.\r\n`,
  ];
  const broken = (text: string): void => resolve({ code: null, text, id: null });
  const late = setTimeout(() => broken("no answer in time"), limitMs);
  const flush = (socket: Bun.Socket<Talk>): void => {
    const { unsent } = socket.data;
    if (unsent.length > 0) socket.data.unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
  };
  const answered = (socket: Bun.Socket<Talk>, code: number, text: string): void => {
    const next = steps[socket.data.step++];
    if (code >= 400 || next === undefined) {
      resolve({ code, text, id: code === 250 ? (ID.exec(text)?.[0] ?? null) : null });
      return;
    }
    socket.data.unsent = Buffer.from(next, "latin1");
    flush(socket);
  };
  const connected = Bun.connect<Talk>({
    ...(typeof at === "number" ? { hostname: "127.0.0.1", port: at } : { hostname: at.host, port: at.port }),
    data: { heard: "", unsent: new Uint8Array(), step: 0 },
    socket: {
      data(socket, chunk) {
        socket.data.heard += chunk.toString("latin1");
        for (;;) {
          const reply = /^(?:\d{3}-[^\r]*\r\n)*(\d{3}) ([^\r]*)\r\n/.exec(socket.data.heard);
          if (reply === null) return;
          socket.data.heard = socket.data.heard.slice(reply[0].length);
          answered(socket, Number(reply[1]), reply[2] ?? "");
        }
      },
      drain: flush,
      close: () => broken("the connection was closed"),
      error: (_socket, error) => broken(String(error)),
    },
  });
  connected.catch((error: unknown) => broken(String(error)));
  return promise.finally(() => {
    clearTimeout(late);
    connected.then(
      (socket) => socket.end("QUIT\r\n"),
      () => undefined,
    );
  });
}
