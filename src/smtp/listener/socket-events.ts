import type { Socket, SocketHandler } from "bun";

/** Receiver of a socket's events. */
export interface SocketOwner {
  received(socket: SmtpSocket, chunk: Buffer): void;
  /** The socket accepts octets again. */
  drained(socket: SmtpSocket): void;
  /** The peer sends no more, but may still read. */
  peerEnded(socket: SmtpSocket): void;
  socketClosed(socket: SmtpSocket): void;
  failed(error: Error): void;
  handshaken(socket: SmtpSocket, success: boolean, error: Error | null): void;
}

export type SmtpSocket = Socket<SocketOwner | undefined>;

/** Passes events of every socket, before and after STARTTLS, to its owner. A refused socket has none. */
export const SOCKET_EVENTS: SocketHandler<SocketOwner | undefined> = {
  data: (socket, chunk) => socket.data?.received(socket, chunk),
  drain: (socket) => socket.data?.drained(socket),
  end: (socket) => socket.data?.peerEnded(socket),
  close: (socket) => socket.data?.socketClosed(socket),
  error: (socket, error) => socket.data?.failed(error),
  handshake: (socket, success, error) => socket.data?.handshaken(socket, success, error),
};
