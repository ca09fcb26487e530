/** An answer with the response that it came in. */
export interface WithResponse<Data> {
  data: Data;
  /** Status and headers. The body has been read. */
  response: Response;
}

/** The promise of an answer. */
export class ApiPromise<Data> implements Promise<Data> {
  readonly [Symbol.toStringTag] = "ApiPromise";
  readonly #send: () => Promise<WithResponse<Data>>;
  #sent: Promise<WithResponse<Data>> | undefined;

  /** @param send sends the request when the promise is first awaited, or at `start` */
  constructor(send: () => Promise<WithResponse<Data>>) {
    this.#send = send;
  }

  /** Sends the request now. */
  start(): this {
    this.withResponse();
    return this;
  }

  /** Resolves to the answer together with the raw response. */
  withResponse(): Promise<WithResponse<Data>> {
    this.#sent ??= this.#send();
    return this.#sent;
  }

  then<Done = Data, Failed = never>(
    onDone?: ((data: Data) => Done | PromiseLike<Done>) | null,
    onFailed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.withResponse()
      .then(({ data }) => data)
      .then(onDone, onFailed);
  }

  catch<Failed = never>(
    onFailed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Data | Failed> {
    return this.then(undefined, onFailed);
  }

  finally(onEnd?: (() => void) | null): Promise<Data> {
    return this.then().finally(onEnd);
  }
}

/** A page of a list. */
export interface Page<One> {
  data: One[];
  nextCursor?: string | null;
}

/** A list: awaited it is its first page, and `for await` walks through the items of all pages. */
export class List<One, First extends Page<One> = Page<One>>
  extends ApiPromise<First>
  implements AsyncIterable<One>
{
  readonly #next: (cursor: string) => Promise<Page<One>>;

  constructor(send: () => Promise<WithResponse<First>>, next: (cursor: string) => Promise<Page<One>>) {
    super(send);
    this.#next = next;
  }

  /** Walks through the pages. Each is requested when it is needed. */
  async *pages(): AsyncGenerator<Page<One>, void, void> {
    let page: Page<One> = await this;
    yield page;
    while (page.nextCursor) {
      page = await this.#next(page.nextCursor);
      yield page;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<One, void, void> {
    for await (const { data } of this.pages()) yield* data;
  }
}
