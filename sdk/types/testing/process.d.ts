import type { ChildProcess } from "node:child_process";
/** Returns the program and its first arguments. */
export declare function commandOf(bin?: string | undefined): readonly string[];
/** Ports of the service. */
export interface Ports {
    http: number;
    submission: number;
}
/** Waits until the service runs. Its output stays read, so that it never waits for us. */
export declare function started(child: ChildProcess, timeoutMs: number): Promise<Ports>;
/** Stops the service, and kills it if that takes too long. */
export declare function ended(child: ChildProcess): Promise<void>;
