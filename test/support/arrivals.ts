/** A list that a test can wait on: `reached(n)` resolves once it has n items. */
export interface Arrivals<Item> {
  readonly items: readonly Item[];
  add(item: Item): void;
  reached(count: number): Promise<Item>;
}

/** An empty list to wait on. */
export function arrivals<Item>(): Arrivals<Item> {
  const items: Item[] = [];
  let waiting: { count: number; resolve: (item: Item) => void }[] = [];
  return {
    items,
    add(item) {
      items.push(item);
      for (const { count, resolve } of waiting) if (count === items.length) resolve(item);
      waiting = waiting.filter(({ count }) => count > items.length);
    },
    reached(count) {
      const there = items[count - 1];
      if (there !== undefined) return Promise.resolve(there);
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
  };
}
