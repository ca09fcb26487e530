/** A bare SMTP listener that commits each message's bytes before its 250: the floor of receiving. */
import { groupCommitStore } from "./floor-database.ts";

interface Session {
  /** Bytes that are not answered yet; during DATA, the message so far. */
  pending: Buffer;
  inData: boolean;
}

const END_OF_DATA = Buffer.from("\r\n.\r\n");
const REPLIES: readonly [RegExp, string][] = [
  [/^EHLO/i, "250-floor\r\n250 8BITMIME\r\n"],
  [/^DATA/i, "354 go on\r\n"],
  [/^QUIT/i, "221 bye\r\n"],
  [/^/, "250 ok\r\n"],
];

const [file, port] = process.argv.slice(2);
const store = await groupCommitStore(file ?? "");

function answer(socket: Bun.Socket<Session>, line: string): void {
  const text = REPLIES.find(([verb]) => verb.test(line))?.[1] ?? "";
  socket.write(text);
  if (/^DATA/i.test(line)) socket.data.inData = true;
  if (/^QUIT/i.test(line)) socket.end();
}

/** Takes one command or one whole message from the pending bytes. Returns false if neither is complete. */
function step(socket: Bun.Socket<Session>): boolean {
  const { data } = socket;
  const mark = data.inData ? END_OF_DATA : "\r\n";
  const end = data.pending.indexOf(mark);
  if (end < 0) return false;
  const head = data.pending.subarray(0, end);
  data.pending = data.pending.subarray(end + mark.length);
  if (!data.inData) {
    answer(socket, head.toString("latin1"));
    return true;
  }
  data.inData = false;
  store(head).then(() => socket.write("250 taken\r\n"));
  return true;
}

Bun.listen<Session>({
  hostname: "127.0.0.1",
  port: Number(port),
  socket: {
    open(socket) {
      socket.data = { pending: Buffer.alloc(0), inData: false };
      socket.write("220 floor ESMTP\r\n");
    },
    data(socket, chunk) {
      const { pending } = socket.data;
      socket.data.pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
      while (step(socket));
    },
  },
});
process.on("SIGTERM", () => process.exit(0));
console.log("ready");
