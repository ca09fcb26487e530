import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { ADD_BATCH, MAX_PENDING_JOBS, openBullQueue, REDIS_ANSWER_MS } from "../../src/queue/bullmq.ts";
import { MAX_WAITING_JOBS, openMemoryQueue } from "../../src/queue/memory.ts";
import { openQueue } from "../../src/queue/open.ts";
import type { Job, Queue, QueueName } from "../../src/queue/port.ts";
import { OVERFLOW_LOG_MS, type QueueDeps } from "../../src/queue/limited-log.ts";
import { manualClock } from "../support/manual-clock.ts";
import { freePort, startRedis, type TestRedis } from "../support/redis.ts";

// A busy machine is slow to kill a server and start it again.
setDefaultTimeout(90_000);

/** Longer than any close in these tests may take, in milliseconds. */
const GRACE_MS = 30_000;
/** A close without running jobs ends well before its grace period, however busy the machine. */
const WELL_BEFORE_MS = GRACE_MS / 2;

let redis: TestRedis;
type Line = { message: string; properties: Record<string, unknown> };
const warnings: Line[] = [];
const told: Line[] = [];
const deps: QueueDeps = {
  clock: systemClock,
  log: {
    info: (message, properties) => void told.push({ message, properties }),
    warn: (message, properties) => void warnings.push({ message, properties }),
  },
};
const opened: Queue[] = [];
let prefixes = 0;

function track(queue: Queue): Queue {
  opened.push(queue);
  return queue;
}

function openOnRedis(prefix = `test${++prefixes}`, clock: Clock = systemClock): Queue {
  return track(openBullQueue({ ...deps, clock }, redis.url, prefix));
}

/** The job whose worker died. Its lock ends after ten seconds, in which the other tests run. */
let inherited: ReturnType<typeof inheritance>;

beforeAll(async () => {
  redis = await startRedis();
  inherited = inheritance();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.close(0)));
  warnings.length = 0;
  told.length = 0;
});
afterAll(async () => {
  await inherited;
  await redis.stop();
});

const job = (key: string): Job => ({ key, lane: `${key}.example` });
const jobs = (count: number, name = "job"): Job[] =>
  Array.from({ length: count }, (_, index) => job(`${name}${index}`));

/** A handler that records its jobs and holds each one until it is released. */
function holder() {
  const started: string[] = [];
  const held = new Map<string, () => void>();
  const waiters: { count: number; resolve: () => void }[] = [];
  let most = 0;
  return {
    started,
    most: () => most,
    handler(taken: Job): Promise<void> {
      started.push(taken.key);
      const { promise, resolve } = Promise.withResolvers<void>();
      held.set(taken.key, resolve);
      most = Math.max(most, held.size);
      for (const waiter of waiters) if (started.length >= waiter.count) waiter.resolve();
      return promise;
    },
    /** Resolves when `count` jobs have been handed out in all. */
    reached(count: number): Promise<void> {
      if (started.length >= count) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiters.push({ count, resolve });
      return promise;
    },
    release(key: string): void {
      held.get(key)?.();
      held.delete(key);
    },
  };
}

/** A handler that records keys and resolves `all` when `count` jobs have been handled. */
function collector(count: number) {
  const keys: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    keys,
    all: promise,
    async handler(taken: Job): Promise<void> {
      keys.push(taken.key);
      if (keys.length === count) resolve();
    },
  };
}

/**
 * Lets a worker die with a job, on a separate Redis. Returns what another worker gets, and after how long.
 */
async function inheritance(): Promise<{ keys: string[]; afterMs: number }> {
  const own = await startRedis();
  const quiet = { clock: systemClock, log: { info: () => undefined, warn: () => undefined } };
  const died = openBullQueue(quiet, own.url);
  const hold = holder();
  died.work("transmit", hold.handler, 1);
  await died.add("transmit", [job("held")]);
  await hold.reached(1);
  // If it is cut off, its job stays locked, as after a kill.
  await died.close(0);
  const other = openBullQueue(quiet, own.url);
  const seen = collector(1);
  const since = systemClock.now();
  other.work("transmit", seen.handler, 1);
  await seen.all;
  const afterMs = systemClock.now() - since;
  await other.close(0);
  await own.stop();
  return { keys: seen.keys, afterMs };
}

/** Adds again until Redis accepts it. Each refused add has waited for one attempt to connect. */
async function addWhenBack(queue: Queue, added: readonly Job[]): Promise<void> {
  for (;;) {
    try {
      return await queue.add("transmit", added);
    } catch {}
  }
}

/** How many of an add and a check the queue refuses. */
async function refusals(queue: Queue): Promise<number> {
  const outcomes = await Promise.allSettled([queue.add("transmit", [job("lost")]), queue.check()]);
  return outcomes.filter(({ status }) => status === "rejected").length;
}

const ADAPTERS: readonly { name: string; open: () => Queue }[] = [
  { name: "in the process", open: () => track(openMemoryQueue(deps)) },
  { name: "BullMQ on Redis", open: () => openOnRedis() },
];

for (const { name, open } of ADAPTERS) {
  describe(`the queue ${name}`, () => {
    test("passes each job to the handler of its name, with key and lane unchanged, oldest first", async () => {
      const queue = open();
      const seen: Job[] = [];
      const { promise, resolve } = Promise.withResolvers<void>();
      const other = collector(1);
      await queue.add("transmit", jobs(ADD_BATCH + 1));
      await queue.add("push", [job("dlv_1")]);
      queue.work("push", other.handler, 1);
      queue.work("transmit", async (taken) => void (seen.push(taken) > ADD_BATCH && resolve()), 1);
      await Promise.all([promise, other.all]);
      expect(seen).toEqual(jobs(ADD_BATCH + 1));
      expect(other.keys).toEqual(["dlv_1"]);
    });

    test("hands out new mail however many retries wait", async () => {
      const queue = open();
      const hold = holder();
      const fresh = collector(1);
      queue.work("retry", hold.handler, 1);
      await queue.add("retry", jobs(100, "old"));
      await hold.reached(1);
      await queue.add("transmit", [job("new")]);
      queue.work("transmit", fresh.handler, 1);
      await fresh.all;
      expect(hold.started).toEqual(["old0"]);
      hold.release("old0");
      await hold.reached(2);
      hold.release("old1");
    });

    test("accepts keys with any character in them", async () => {
      const queue = open();
      const keys = ["msg_1.0", "a:b", "a:b:c:d", "7", "0", "0:1", "ü {x} *"];
      const seen = collector(keys.length);
      await queue.add("transmit", keys.map(job));
      queue.work("transmit", seen.handler, 1);
      await seen.all;
      expect(seen.keys).toEqual(keys);
    });

    test("never calls a handler inside add", async () => {
      const queue = open();
      const seen = collector(1);
      queue.work("transmit", seen.handler, 1);
      const adding = queue.add("transmit", [job("a")]);
      expect(seen.keys).toEqual([]);
      await adding;
      await seen.all;
    });

    test("does not add a key that already waits", async () => {
      const queue = open();
      const seen = collector(2);
      await queue.add("transmit", [job("a"), job("a")]);
      await queue.add("transmit", [job("a"), job("last")]);
      queue.work("transmit", seen.handler, 1);
      await seen.all;
      expect(seen.keys).toEqual(["a", "last"]);
    });

    test("runs a key that is added after its run again", async () => {
      const queue = open();
      const hold = holder();
      queue.work("transmit", hold.handler, 1);
      await queue.add("transmit", [job("a"), job("b")]);
      await hold.reached(1);
      hold.release("a");
      // With one job at a time, the next running one shows that the one before is done and recorded.
      await hold.reached(2);
      await queue.add("transmit", [job("a")]);
      hold.release("b");
      await hold.reached(3);
      hold.release("a");
      expect(hold.started).toEqual(["a", "b", "a"]);
    });

    test("runs a key that is added during its run once more after it, however often it was added", async () => {
      const queue = open();
      const hold = holder();
      queue.work("transmit", hold.handler, 2);
      await queue.add("transmit", [job("a")]);
      await hold.reached(1);
      for (let times = 0; times < 3; times++) await queue.add("transmit", [job("a")]);
      await queue.add("transmit", [job("b")]);
      await hold.reached(2);
      expect(hold.started).toEqual(["a", "b"]);
      hold.release("b");
      hold.release("a");
      await hold.reached(3);
      await queue.add("transmit", [job("last")]);
      await hold.reached(4);
      expect(hold.started).toEqual(["a", "b", "a", "last"]);
      hold.release("a");
      hold.release("last");
    });

    test("reaches its concurrency and never exceeds it", async () => {
      const queue = open();
      const hold = holder();
      await queue.add("transmit", jobs(9));
      queue.work("transmit", hold.handler, 3);
      for (let done = 0; done < 9; done++) {
        await hold.reached(Math.min(done + 3, 9));
        expect(hold.started.length).toBeLessThanOrEqual(done + 3);
        hold.release(`job${done}`);
      }
      expect(hold.most()).toBe(3);
    });

    test("logs a handler's rejection, drops the job and continues", async () => {
      const queue = open();
      const seen = collector(2);
      queue.work(
        "transmit",
        async (taken) => {
          if (taken.key === "bad") throw new Error("broken");
          await seen.handler(taken);
        },
        1,
      );
      await queue.add("transmit", [job("good"), job("bad"), job("after")]);
      await seen.all;
      expect(seen.keys).toEqual(["good", "after"]);
      expect(warnings).toContainEqual({ message: "job failed", properties: { key: "bad", error: "broken" } });
    });

    test("accepts one worker for each name", () => {
      const queue = open();
      queue.work("transmit", async () => {}, 1);
      expect(() => queue.work("transmit", async () => {}, 1)).toThrow("already has a worker");
    });

    test("waits in close for the running jobs and hands out no more", async () => {
      const queue = open();
      const hold = holder();
      queue.work("transmit", hold.handler, 1);
      await queue.add("transmit", jobs(3));
      await hold.reached(1);
      let closed = false;
      const closing = queue.close(GRACE_MS).then(() => {
        closed = true;
      });
      await redis.command("ping");
      expect(closed).toBe(false);
      hold.release("job0");
      await closing;
      expect(hold.started).toEqual(["job0"]);
    });

    test("leaves a running job alone when the grace period of close is over", async () => {
      const queue = open();
      const hold = holder();
      queue.work("transmit", hold.handler, 1);
      await queue.add("transmit", [job("endless")]);
      await hold.reached(1);
      await queue.close(1);
      expect(hold.started).toEqual(["endless"]);
      hold.release("endless");
    });

    test("closes once, however often it is called", async () => {
      const queue = open();
      const hold = holder();
      queue.work("transmit", hold.handler, 1);
      await queue.add("transmit", [job("a")]);
      await hold.reached(1);
      const closing = [queue.close(GRACE_MS), queue.close(GRACE_MS)];
      hold.release("a");
      await Promise.all(closing);
    });

    test("answers a check while it can be reached", async () => {
      await open().check();
    });
  });
}

describe("the queue in the process", () => {
  const FULL = "the queue is full, jobs are left to the sweep";

  test("drops jobs over its capacity, logs how many, and accepts them once there is room", async () => {
    const queue = track(openMemoryQueue(deps, 3));
    const first = collector(3);
    await queue.add("transmit", jobs(5));
    expect(told).toEqual([{ message: FULL, properties: { queue: "transmit", jobs: 2 } }]);
    const second = collector(5);
    queue.work("transmit", (taken) => Promise.all([first.handler(taken), second.handler(taken)]).then(), 1);
    await first.all;
    await queue.add("transmit", jobs(5).slice(3));
    await second.all;
    expect(second.keys).toEqual(jobs(5).map(({ key }) => key));
  });

  test("the queue in the process holds as many jobs as its limit and drops the next one", async () => {
    const queue = track(openMemoryQueue(deps));
    await queue.add("transmit", jobs(MAX_WAITING_JOBS));
    expect(told).toEqual([]);
    await queue.add("transmit", [job("past")]);
    expect(told.length).toBe(1);
  });

  test("the queue in the process keeps nothing if the process has no worker, and does not log it", async () => {
    const queue = track(openQueue(deps, { redisUrl: null, works: false }));
    await queue.add("transmit", jobs(MAX_WAITING_JOBS + 1));
    expect(told).toEqual([]);
    expect(() => queue.work("transmit", async () => {}, 1)).toThrow("must not work on");
    await queue.check();
  });

  test("logs once a minute how many jobs were dropped, for each queue, and at its close", async () => {
    const clock = manualClock();
    const queue = track(openMemoryQueue({ ...deps, clock }, 1));
    const leaveOut = (name: QueueName, count: number) => queue.add(name, jobs(count + 1));
    const said = () => told.splice(0).map(({ properties }) => [properties.queue, properties.jobs]);
    for (let time = 0; time < 100; time++) await leaveOut("transmit", 2);
    await leaveOut("push", 5);
    expect(said()).toEqual([
      ["transmit", 2],
      ["push", 5],
    ]);
    clock.advance(OVERFLOW_LOG_MS - 1);
    await leaveOut("transmit", 2);
    expect(said()).toEqual([]);
    clock.advance(1);
    await leaveOut("transmit", 2);
    expect(said()).toEqual([["transmit", 202]]);
    await leaveOut("retry", 1);
    await leaveOut("retry", 3);
    await queue.close(0);
    expect(said()).toEqual([
      ["retry", 1],
      ["retry", 3],
    ]);
    expect([warnings, clock.pending()]).toEqual([[], 0]);
  });
});

describe("the queue BullMQ on Redis", () => {
  test("the queue BullMQ on Redis is shared: two workers run jobs of one queue at a time, each job once", async () => {
    const prefix = `test${++prefixes}`;
    const [one, two] = [openOnRedis(prefix), openOnRedis(prefix)];
    const [first, second] = [holder(), holder()];
    one.work("transmit", first.handler, 1);
    two.work("transmit", second.handler, 1);
    await one.add("transmit", jobs(2));
    await Promise.all([first.reached(1), second.reached(1)]);
    expect([...first.started, ...second.started].sort()).toEqual(["job0", "job1"]);
    for (const hold of [first, second]) for (const key of hold.started) hold.release(key);
  });

  test("hands a job that close released to another worker", async () => {
    const prefix = `test${++prefixes}`;
    const [one, two] = [openOnRedis(prefix), openOnRedis(prefix)];
    const hold = holder();
    one.work("transmit", hold.handler, 1);
    await one.add("transmit", jobs(20));
    await hold.reached(1);
    hold.release("job0");
    await one.close(GRACE_MS);
    const rest = collector(20 - hold.started.length);
    two.work("transmit", rest.handler, 1);
    await rest.all;
    expect([...hold.started, ...rest.keys].sort()).toEqual(
      jobs(20)
        .map(({ key }) => key)
        .sort(),
    );
  });

  test("two prefixes on one Redis are two queues", async () => {
    const [one, two] = [openOnRedis(), openOnRedis()];
    const [mine, theirs] = [collector(1), collector(1)];
    one.work("transmit", mine.handler, 1);
    two.work("transmit", theirs.handler, 1);
    await one.add("transmit", [job("mine")]);
    await two.add("transmit", [job("theirs")]);
    await Promise.all([mine.all, theirs.all]);
    expect([mine.keys, theirs.keys]).toEqual([["mine"], ["theirs"]]);
  });

  test("the queue BullMQ on Redis leaves nothing of a finished job in Redis", async () => {
    const prefix = `test${++prefixes}`;
    const queue = openOnRedis(prefix);
    const seen = collector(2);
    queue.work("transmit", seen.handler, 1);
    await queue.add("transmit", [job("msg_a.0"), job("msg_b.0")]);
    await seen.all;
    await queue.close(GRACE_MS);
    const keys = (await redis.command("--raw", "keys", `${prefix}:*`)).split("\n");
    expect(keys).toContain(`${prefix}:transmit:id`);
    expect(keys.filter((key) => !/:(events|id|marker|meta|stalled-check)$/.test(key))).toEqual([]);
  });

  test.each([
    ["has ended", (key: string) => ["del", `${key}:1:lock`]],
    ["is another worker's", (key: string) => ["set", `${key}:1:lock`, "another"]],
    ["has ended, and that waits again", (key: string) => ["lrem", `${key}:active`, "0", "1"]],
  ])(
    "the queue BullMQ on Redis reports that a job whose lock %s, as after a blocked event loop, may come again",
    async (_, meddle) => {
      const prefix = `test${++prefixes}`;
      const queue = openOnRedis(prefix);
      const hold = holder();
      queue.work("transmit", hold.handler, 1);
      await queue.add("transmit", jobs(2));
      await hold.reached(1);
      await redis.command(...meddle(`${prefix}:transmit`));
      hold.release("job0");
      // The next one is handed out as well.
      await hold.reached(2);
      hold.release("job1");
      const told = new Set(warnings.map(({ message }) => message));
      expect([...told]).toEqual(["a job outlived its lock, it may run again"]);
    },
  );

  test("the queue BullMQ on Redis loses its jobs to a flush, including a running one, and continues", async () => {
    const queue = openOnRedis();
    const hold = holder();
    queue.work("transmit", hold.handler, 1);
    await queue.add("transmit", jobs(3));
    await hold.reached(1);
    await redis.command("flushall");
    hold.release("job0");
    await queue.add("transmit", [job("job2"), job("job0")]);
    await hold.reached(2);
    hold.release("job2");
    await hold.reached(3);
    hold.release("job0");
    expect(hold.started).toEqual(["job0", "job2", "job0"]);
  });

  test("the queue BullMQ on Redis refuses an add at once while Redis is down and continues when an empty one is back", async () => {
    const queue = openOnRedis();
    const hold = holder();
    queue.work("transmit", hold.handler, 1);
    await queue.add("transmit", jobs(3));
    await hold.reached(1);
    await redis.kill();
    const downSince = systemClock.now();
    expect(await refusals(queue)).toBe(2);
    expect(systemClock.now() - downSince).toBeLessThan(REDIS_ANSWER_MS);
    hold.release("job0");
    await redis.restart();
    await addWhenBack(queue, [job("new")]);
    await hold.reached(2);
    hold.release("new");
    expect(hold.started).toEqual(["job0", "new"]);
    await queue.check();
  });

  test("the queue BullMQ on Redis gives a job whose worker died to another soon, without a new hint", async () => {
    const { keys, afterMs } = await inherited;
    expect(keys).toEqual(["held"]);
    expect(afterMs).toBeLessThan(20_000);
  });

  test("the queue BullMQ on Redis closes while Redis is down", async () => {
    const queue = openOnRedis();
    const hold = holder();
    queue.work("transmit", hold.handler, 1);
    await queue.add("transmit", jobs(2));
    await hold.reached(1);
    await redis.kill();
    hold.release("job0");
    const closingSince = systemClock.now();
    await queue.close(GRACE_MS);
    expect(systemClock.now() - closingSince).toBeLessThan(WELL_BEFORE_MS);
    await redis.restart();
  });

  test("the queue BullMQ on Redis closes right after Redis came back", async () => {
    const queue = openOnRedis();
    const hold = holder();
    queue.work("transmit", hold.handler, 1);
    await queue.add("transmit", jobs(2));
    await hold.reached(1);
    await redis.restart();
    hold.release("job0");
    const closingSince = systemClock.now();
    await queue.close(GRACE_MS);
    expect(systemClock.now() - closingSince).toBeLessThan(WELL_BEFORE_MS);
  });

  test("the queue BullMQ on Redis starts while Redis is down and works when it is there", async () => {
    await redis.kill();
    const queue = openOnRedis();
    const seen = collector(1);
    queue.work("transmit", seen.handler, 1);
    expect(await refusals(queue)).toBe(2);
    await redis.restart();
    await addWhenBack(queue, [job("new")]);
    await seen.all;
    expect(seen.keys).toEqual(["new"]);
  });

  test("the queue BullMQ on Redis opens and closes without any Redis", async () => {
    const queue = track(openQueue(deps, { redisUrl: `redis://127.0.0.1:${freePort()}`, works: true }));
    queue.work("transmit", async () => {}, 1);
    queue.work("push", async () => {}, 1);
    expect(await refusals(queue)).toBe(2);
    await queue.close(GRACE_MS);
  });

  test("the queue BullMQ on Redis gives up an add and a check that a frozen Redis does not answer, and drops jobs past its limit", async () => {
    const timeouts = new Set<() => void>();
    const clock: Clock = {
      ...systemClock,
      after(delayMs, fire) {
        if (delayMs !== REDIS_ANSWER_MS) return systemClock.after(delayMs, fire);
        timeouts.add(fire);
        return () => void timeouts.delete(fire);
      },
    };
    const queue = openOnRedis(undefined, clock);
    await queue.check();
    redis.freeze();
    const batches = MAX_PENDING_JOBS / ADD_BATCH;
    const adding = Array.from({ length: batches }, (_, batch) =>
      queue.add("transmit", jobs(ADD_BATCH, `b${batch}.`)),
    );
    const checking = queue.check();
    await queue.add("transmit", [job("past")]);
    expect(warnings).toEqual([
      { message: "redis is slow, jobs are left to the sweep", properties: { queue: "transmit", jobs: 1 } },
    ]);
    expect(timeouts.size).toBe(batches + 1);
    for (const fire of [...timeouts]) fire();
    const outcomes = await Promise.allSettled([...adding, checking]);
    redis.thaw();
    expect(outcomes.map(({ status }) => status)).toEqual(Array(batches + 1).fill("rejected"));
  });
});

test("openQueue chooses Redis if its address is set, and otherwise the process", async () => {
  const seen = collector(2);
  for (const redisUrl of [null, redis.url]) {
    const queue = track(openQueue(deps, { redisUrl, prefix: "picked", works: true }));
    queue.work("push", seen.handler, 1);
    await queue.add("push", [job("a")]);
  }
  await seen.all;
  expect(await redis.command("exists", "picked:push:id")).toBe("1");
});
