import { fileURLToPath } from "node:url";
import { plugin } from "bun";

const CLOCK = fileURLToPath(import.meta.resolve("../../src/clock.ts"));
const MARK = "export const systemClock: Clock = {";

// Read here, and not when it is loaded: if it changes, the service fails to start instead of running at its usual pace.
const source = await Bun.file(CLOCK).text();
if (!source.includes(MARK)) throw new Error("the system's clock has changed: it would not hurry");
const contents = `${source.replace(MARK, "const real: Clock = {")}
const [from, times] = [Number(process.env.HURRIED_FROM), Number(process.env.HURRIED_TIMES)];
export const systemClock: Clock = {
  now: () => from + (real.now() - from) * times,
  elapsed: () => real.elapsed() * times,
  after: (delayMs, fire) => real.after(delayMs / times, fire),
};`;

// Loaded before a process of the service. From HURRIED_FROM on, milliseconds since the epoch, its time passes HURRIED_TIMES as fast.
// All processes of a service share both values, so that their clocks agree.
plugin({
  name: "hurry",
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(CLOCK)}$`) }, () => ({ contents, loader: "ts" }));
  },
});
