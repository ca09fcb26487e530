/** An HTTP client that asks on one kept connection and waits for the answer. */

interface Talk {
  heard: string;
  answered: ((answer: string) => void) | null;
}

export interface WaitingClient {
  /** Sends a GET. Resolves with the whole answer, which has a JSON object for its body. */
  ask(path: string, key: string): Promise<string>;
  end(): void;
}

/** Connects to a port of this machine. */
export async function waitingClient(port: number): Promise<WaitingClient> {
  const talk: Talk = { heard: "", answered: null };
  const socket = await Bun.connect<Talk>({
    hostname: "127.0.0.1",
    port,
    data: talk,
    socket: {
      data({ data }, chunk) {
        data.heard += chunk.toString("latin1");
        const body = data.heard.indexOf("\r\n\r\n") + 4;
        const length = Number(/content-length: (\d+)/i.exec(data.heard)?.[1]);
        if (body < 4 || data.heard.length < body + length) return;
        const answer = data.heard;
        data.heard = "";
        data.answered?.(answer);
      },
    },
  });
  return {
    ask(path, key) {
      const fields = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n`;
      const usual =
        "User-Agent: postrider-bench/1.0\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n";
      socket.write(`GET ${path} HTTP/1.1\r\n${fields}${usual}\r\n`);
      return new Promise((resolve) => {
        talk.answered = resolve;
      });
    },
    end: () => void socket.end(),
  };
}
