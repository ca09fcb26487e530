/** One server-sent event. */
export interface SentEvent {
  id: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the stream shows.
  data: any;
}

/** An open stream of events. */
export interface EventReader {
  status: number;
  headers: Headers;
  /** The body of an answer that is no stream. */
  refusal: string;
  /** Resolves with the next event; null when the server has ended the stream. */
  next(): Promise<SentEvent | null>;
  /** Reads events until one fits. */
  until(fits: (event: SentEvent) => boolean): Promise<SentEvent[]>;
  /** Resolves when the server has ended the stream. */
  ended(): Promise<void>;
  /** Comments that have come. */
  comments: string[];
  close(): void;
}

export interface StreamAsked {
  url: string;
  /** Null: the headers have a session's cookie. */
  key: string | null;
  query?: string;
  headers?: Record<string, string>;
}

/** Opens `/v1/events/stream`. Resolves when the server has answered, and begun the stream. */
export async function openEvents({ url, key, query = "", headers = {} }: StreamAsked): Promise<EventReader> {
  const stop = new AbortController();
  const response = await fetch(`${url}/v1/events/stream${query}`, {
    headers: { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...headers },
    signal: stop.signal,
  });
  const comments: string[] = [];
  const blocks = response.ok ? blocksOf(response) : null;
  const next = async (): Promise<SentEvent | null> => {
    for (;;) {
      const block = (await blocks?.next().catch(() => null))?.value ?? null;
      if (block === null) return null;
      const event = read(block, comments);
      if (event !== null) return event;
    }
  };
  const first = blocks === null ? null : await blocks.next();
  if (first?.value) read(first.value, comments);
  return {
    status: response.status,
    headers: response.headers,
    refusal: response.ok ? "" : await response.text(),
    comments,
    next,
    async until(fits) {
      const events: SentEvent[] = [];
      for (;;) {
        const event = await next();
        if (event === null) throw new Error(`the stream ended after ${JSON.stringify(events)}`);
        events.push(event);
        if (fits(event)) return events;
      }
    },
    async ended() {
      while ((await next()) !== null);
    },
    close: () => stop.abort(),
  };
}

async function* blocksOf(response: Response): AsyncGenerator<string, null, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 2);
    }
  }
  return null;
}

function read(block: string, comments: string[]): SentEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) comments.push(line.slice(1).trim());
    else fields.set(line.slice(0, colon), line.slice(colon + 1).replace(/^ /, ""));
  }
  const data = fields.get("data");
  if (data === undefined) return null;
  return { id: fields.get("id") ?? "", event: fields.get("event") ?? "message", data: JSON.parse(data) };
}
