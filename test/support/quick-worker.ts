// A pool thread whose tasks take as many milliseconds as they ask for.
import { systemClock } from "../../src/clock.ts";
import { sleep } from "../../src/core/time/clock.ts";
import { serveCpu } from "../../src/wiring/cpu/serve.ts";

serveCpu<null, number, string>(() => ({
  async run(ms) {
    if (ms > 0) await sleep(systemClock, ms);
    return "done";
  },
  octets: () => 0,
  handedOver: () => [],
}));
