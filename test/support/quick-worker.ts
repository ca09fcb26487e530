// A thread of a pool whose tasks take as many milliseconds as is asked.
import { systemClock } from "../../src/clock.ts";
import { sleep } from "../../src/core/clock.ts";
import { serveThread } from "../../src/wiring/threads/serve.ts";

serveThread<null, number, string>(() => ({
  async run(ms) {
    if (ms > 0) await sleep(systemClock, ms);
    return "done";
  },
  octets: () => 0,
  handedOver: () => [],
}));
