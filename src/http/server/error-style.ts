import type { Answer } from "../routing/answer.ts";
import { errorAnswer } from "../routing/errors.ts";
import { resendErrorAnswer } from "../resend/form/errors.ts";
import { RESEND_PATH } from "../resend/form/translate.ts";

/**
 * Returns the answer to an error in the form that clients of this path read.
 * @param hasKey true if the request brought a key
 */
export function answerErrorAt(path: string, thrown: unknown, requestId: string, hasKey: boolean): Answer {
  const isResend = path === RESEND_PATH || path.startsWith(`${RESEND_PATH}/`);
  return isResend ? resendErrorAnswer(thrown, requestId, hasKey) : errorAnswer(thrown, requestId);
}
