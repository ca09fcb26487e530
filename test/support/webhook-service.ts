import { afterEach, beforeEach, expect } from "bun:test";
import { type HttpsSink, startSink } from "./https-sink.ts";
import { hurried } from "./hurried-clock.ts";
import { startService, type TestService } from "./service.ts";

/** Retries almost without a delay. An endpoint has a minute, because time runs faster. */
export const FAST_PUSHES = { WEBHOOK_RETRY_SECONDS: "0,0.02,0.02,0.02", WEBHOOK_TIMEOUT_SECONDS: "60" };
/** Timers run so much faster than the system's, because the sweep, which finds due pushes, waits a second. */
const HURRY = 5;

/** A service and an endpoint for its pushes, both new for each test. */
export interface WebhookService {
  /** Available from the beginning of each test, like `sink`. */
  readonly service: TestService;
  readonly sink: HttpsSink;
  /** Makes a webhook and returns the API's answer. Unless another URL is given, it points at the endpoint. */
  subscribe(eventTypes: readonly string[], url?: string): Promise<{ id: string; signingSecret: string }>;
}

/** Starts both before each test of the file and stops them after it. */
export function webhookService(): WebhookService {
  let running: { service: TestService; sink: HttpsSink } | null = null;
  const there = () => {
    if (running === null) throw new Error("the service runs in tests only");
    return running;
  };
  beforeEach(async () => {
    running = { sink: startSink(), service: await startService(FAST_PUSHES, hurried(HURRY)) };
  });
  afterEach(async () => {
    const { service, sink } = there();
    running = null;
    await service.stop();
    await sink.stop();
  });
  return {
    get service() {
      return there().service;
    },
    get sink() {
      return there().sink;
    },
    async subscribe(eventTypes, url = there().sink.url) {
      const made = await there().service.call("POST", "/v1/webhooks", { url, eventTypes });
      expect(made.status).toBe(201);
      return made.body;
    },
  };
}
