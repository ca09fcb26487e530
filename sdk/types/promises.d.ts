/** An answer with the response that it came in. */
export interface WithResponse<Data> {
    data: Data;
    /** Status and headers. The body has been read. */
    response: Response;
}
/** The promise of an answer. */
export declare class ApiPromise<Data> implements Promise<Data> {
    #private;
    readonly [Symbol.toStringTag] = "ApiPromise";
    /** @param send sends the request when the promise is first awaited, or at `start` */
    constructor(send: () => Promise<WithResponse<Data>>);
    /** Sends the request now. */
    start(): this;
    /** Resolves to the answer together with the raw response. */
    withResponse(): Promise<WithResponse<Data>>;
    then<Done = Data, Failed = never>(onDone?: ((data: Data) => Done | PromiseLike<Done>) | null, onFailed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null): Promise<Done | Failed>;
    catch<Failed = never>(onFailed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null): Promise<Data | Failed>;
    finally(onEnd?: (() => void) | null): Promise<Data>;
}
/** A page of a list. */
export interface Page<One> {
    data: One[];
    nextCursor?: string | null;
}
/** A list: awaited it is its first page, and `for await` walks through the items of all pages. */
export declare class List<One, First extends Page<One> = Page<One>> extends ApiPromise<First> implements AsyncIterable<One> {
    #private;
    constructor(send: () => Promise<WithResponse<First>>, next: (cursor: string) => Promise<Page<One>>);
    /** Walks through the pages. Each is requested when it is needed. */
    pages(): AsyncGenerator<Page<One>, void, void>;
    [Symbol.asyncIterator](): AsyncGenerator<One, void, void>;
}
