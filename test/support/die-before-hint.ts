import { plugin } from "bun";

// Loaded before the service. Kills the process between the commit of the first send and its hint to the queue.
plugin({
  name: "die before the hint",
  setup(build) {
    build.onLoad({ filter: /src\/flows\/dispatch\/hint\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      const mark = "if (jobs.length === 0) return;";
      if (!source.includes(mark)) throw new Error("hint() has changed: this kill would not happen");
      const deadly = `${mark} process.kill(process.pid, "SIGKILL");`;
      return { contents: source.replace(mark, deadly), loader: "ts" };
    });
  },
});
