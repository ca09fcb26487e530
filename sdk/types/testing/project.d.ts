import { Postrider } from "../client.ts";
import type { StreamedEvent } from "../resources/events.ts";
import type { Answer, Body } from "../types.ts";
/** Which message to wait for. A string fits if it is contained, an address if it is equal. */
export interface MessageFilter {
    to?: string | RegExp;
    from?: string | RegExp;
    subject?: string | RegExp;
}
type Message = Answer<"getEmail">;
/** A captured message with its body, `codes`, `links` and attachments. */
export type CapturedMessage = Message & Required<Pick<Message, "codes" | "links">>;
type EventOf<Type> = Type extends "*" ? StreamedEvent : Extract<StreamedEvent, {
    type: Type;
}>;
/** Events of a project as its webhooks have them, in their order. */
export interface TestEvents {
    /** Calls `handler` for each event of the type from now on; `*` means all. Returns a function that ends that. */
    on<Type extends StreamedEvent["type"] | "*">(type: Type, handler: (event: EventOf<Type>) => void): () => void;
}
/** One project of the service. Projects see nothing of each other, so parallel tests take one each. */
export interface TestProject {
    /** Origin of the API. */
    url: string;
    apiKey: string;
    client: Postrider;
    /** `smtp://…` with the project's login. */
    smtpUrl: string;
    /** Options for `nodemailer.createTransport`. */
    smtp: {
        host: string;
        port: number;
        auth: {
            user: string;
            pass: string;
        };
        secure: false;
        ignoreTLS: true;
    };
    webhooks: TestEvents;
    /**
     * Waits for the first message that fits and was sent: captured, or failed as `failNext` asks. Each is returned once.
     * @throws if none comes in time; the error lists what did
     */
    waitFor(filter?: MessageFilter, options?: {
        timeoutMs?: number;
    }): Promise<CapturedMessage>;
    /** Receives a made-up message. Makes the inbox of `to`, and its domain, if the project lacks them. */
    receive(message: Body<"simulateInbound"> & {
        to: string;
    }): Promise<Answer<"simulateInbound">>;
    /** Forgets the messages and suppressions so far. The first project also forgets the failures. */
    reset(): Promise<void>;
}
/** The address of the service. It is never reached from other machines. */
export declare const HOST = "127.0.0.1";
/** The part that the projects of a service share. */
export interface ProjectParts {
    place: {
        url: string;
        port: number;
    };
    /** Aborts when the service ends. */
    signal: AbortSignal;
}
/** Returns the project of a key. */
export declare function projectOf({ place, signal }: ProjectParts, apiKey: string): TestProject;
/** Returns the source of a regular expression that fits an address. */
export declare function patternOf(wanted: string | RegExp): string;
export {};
