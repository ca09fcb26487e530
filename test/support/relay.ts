/** A fixed address that forwards to one server after another, as a name does if its record changes. */
export interface Relay {
  port: number;
  /** Forwards new connections to that port of this machine. Existing connections keep their server. */
  leadTo(port: number): void;
  stop(): void;
}

interface End {
  other: Bun.Socket<End> | null;
  /** Bytes that arrived before the server was connected. */
  early: Uint8Array[];
}

/**
 * Starts the relay, which forwards to `first`. Meant for small exchanges: bytes that a peer does not accept at once
 * are lost. @param delayMs delay of everything, each way
 */
export function startRelay(first: number, delayMs = 0): Relay {
  const pass = (to: Bun.Socket<End>, piece: Uint8Array): void => {
    const copy = Uint8Array.from(piece);
    if (delayMs === 0) to.write(copy);
    else setTimeout(() => to.write(copy), delayMs);
  };
  let target = first;
  const ending = {
    close: ({ data }: Bun.Socket<End>) => void data.other?.end(),
    error: ({ data }: Bun.Socket<End>) => void data.other?.end(),
  };
  const server = Bun.listen<End>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...ending,
      open(socket) {
        socket.data = { other: null, early: [] };
        const reached = Bun.connect<End>({
          hostname: "127.0.0.1",
          port: target,
          data: { other: socket, early: [] },
          socket: {
            ...ending,
            open(far) {
              socket.data.other = far;
              for (const piece of socket.data.early.splice(0)) pass(far, piece);
            },
            data: (_, piece) => pass(socket, piece),
          },
        });
        reached.catch(() => socket.end());
      },
      data({ data }, piece) {
        if (data.other === null) data.early.push(Uint8Array.from(piece));
        else pass(data.other, piece);
      },
    },
  });
  return {
    port: server.port,
    leadTo: (port) => {
      target = port;
    },
    stop: () => server.stop(true),
  };
}
