import { type TestProject } from "./testing/project.ts";
export type { CapturedMessage, MessageFilter, TestEvents, TestProject } from "./testing/project.ts";
/** How to start the service. */
export interface TestOptions {
    /** Path of the program. Default: `POSTRIDER_BIN`, else the package `@postrider/server`, else a clone above the current folder. */
    bin?: string;
    /** Further settings. */
    env?: Readonly<Record<string, string>>;
    /** Milliseconds for the start. Default: 30 000. */
    timeoutMs?: number;
}
/** The failure that the next deliveries meet. */
export interface Failure {
    /** The recipients that fail. Default: all. */
    to?: string | RegExp;
    stage: "connect" | "mail" | "rcpt" | "data";
    /** The receiver's reply, such as `451 4.7.1 try later`. 4xx is tried again, 5xx bounces. */
    reply: string;
    /** Number of attempts that fail. Default: 1. */
    times?: number;
}
/** A time to go forward. Units add up. */
export interface Advance {
    ms?: number;
    seconds?: number;
    minutes?: number;
    hours?: number;
    days?: number;
}
/** The running service and its first project. */
export interface TestService extends TestProject {
    /** Makes a further project. */
    project(name: string): Promise<TestProject>;
    /** Makes the next deliveries fail. */
    failNext(failure: Failure): Promise<void>;
    /** Sets the service's clock forward: retries and scheduled messages come due. */
    advance(by: Advance): Promise<void>;
    /** Ends the service and removes its folder. */
    stop(): Promise<void>;
}
/**
 * Starts the real service on free ports, with an empty database in a temporary folder. All mail is captured. The service ends
 * with this process, even if it is killed.
 */
export declare function startPostrider(options?: TestOptions): Promise<TestService>;
