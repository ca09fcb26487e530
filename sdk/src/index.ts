export type * from "./api.ts";
export { Postrider } from "./client.ts";
export { type ErrorDetails, type ErrorType, PostriderError } from "./errors.ts";
export { ApiPromise, List, type Page, type WithResponse } from "./promises.ts";
export type { StreamedEvent, StreamFilter } from "./resources/events.ts";
export type {
  Answer,
  Body,
  ClientOptions,
  ImportFile,
  Item,
  OperationId,
  Query,
  RequestOptions,
} from "./types.ts";
export {
  SIGNATURE_HEADER,
  type VerificationFault,
  type VerifyOptions,
  verifyWebhook,
  WebhookVerificationError,
} from "./webhooks.ts";
