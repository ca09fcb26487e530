import type { Socket, SocketHandler } from "bun";

/** What a socket's events go to. */
export interface SocketOwner {
  received(socket: SmtpSocket, chunk: Buffer): void;
  /** The socket takes octets again. */
  drained(socket: SmtpSocket): void;
  /** The peer sends no more; it may still read. */
  peerEnded(socket: SmtpSocket): void;
  socketClosed(socket: SmtpSocket): void;
  failed(error: Error): void;
  handshaken(socket: SmtpSocket, success: boolean, error: Error | null): void;
}

export type SmtpSocket = Socket<SocketOwner | undefined>;

/** Events of every socket, before and after STARTTLS, go to its owner. Sockets refused at the door have none. */
export const SOCKET_EVENTS: SocketHandler<SocketOwner | undefined> = {
  data: (socket, chunk) => socket.data?.received(socket, chunk),
  drain: (socket) => socket.data?.drained(socket),
  end: (socket) => socket.data?.peerEnded(socket),
  close: (socket) => socket.data?.socketClosed(socket),
  error: (socket, error) => socket.data?.failed(error),
  handshake: (socket, success, error) => socket.data?.handshaken(socket, success, error),
};
