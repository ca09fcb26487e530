import { join } from "node:path";

/** A program of an npm package. */
export interface Tool {
  name: string;
  version: string;
  /** Path of the program within the package. */
  bin: string;
}

const ROOT = join(import.meta.dir, "../..");

/** Finds the program among the project's packages, or in the folder that POSTRIDER_TOOLS names. */
export function toolPath({ name, bin }: Tool): string {
  return join(process.env.POSTRIDER_TOOLS ?? join(ROOT, "node_modules"), name, bin);
}

/** Starts the program with this Bun. */
export function spawnTool(tool: Tool, args: readonly string[], env: Record<string, string>) {
  return Bun.spawn([process.execPath, toolPath(tool), ...args], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    env: { ...process.env, ...env, NO_COLOR: "1" },
  });
}
