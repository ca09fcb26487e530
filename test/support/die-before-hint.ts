import { plugin } from "bun";

// Loaded before the service: the process is killed in the very moment between the commit of a send and the hint to the
// queue, the first time there is something to hint.
plugin({
  name: "die before the hint",
  setup(build) {
    build.onLoad({ filter: /src\/flows\/hint\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      const mark = "if (jobs.length === 0) return;";
      if (!source.includes(mark)) throw new Error("hint() has changed: this kill would not happen");
      const deadly = `${mark} process.kill(process.pid, "SIGKILL");`;
      return { contents: source.replace(mark, deadly), loader: "ts" };
    });
  },
});
