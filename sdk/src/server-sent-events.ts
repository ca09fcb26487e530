import { PostriderError } from "./errors.ts";

/** Milliseconds without a byte after which a connection counts as lost. The service sends a comment every 20 seconds. */
const IDLE_MS = 60_000;
/** Characters of one event. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

/** One event of a stream. */
export interface ServerSentEvent {
  id: string;
  data: string;
}

/** Reads the events of a stream (HTML standard, section 9.2). Ends with the stream, and throws if the connection breaks. */
export async function* readServerSentEvents(
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<ServerSentEvent, void, void> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await readWithin(reader);
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = eventOf(block);
        if (event.data !== "") yield event;
      }
      if (text.length > MAX_EVENT_CHARS)
        throw new PostriderError("An event is too long.", { type: "connection_error", status: 0 });
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

interface Chunk {
  done: boolean;
  value?: Uint8Array | undefined;
}

async function readWithin(reader: { read(): Promise<Chunk> }): Promise<Chunk> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("silent")), IDLE_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

function eventOf(block: string): ServerSentEvent {
  const fields = block.split("\n").map((line) => /^(\w+): ?(.*)$/.exec(line) ?? []);
  const values = (name: string) => fields.flatMap(([, field, value = ""]) => (field === name ? [value] : []));
  return { id: values("id").at(-1) ?? "", data: values("data").join("\n") };
}
