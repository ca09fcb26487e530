import type { SendLimits } from "../../core/messages/send-rules.ts";
import type { Outbox } from "../outbox.ts";
import type { Making } from "../mime/making.ts";
import type { VolumeLimits } from "./volume.ts";

/** The services that take messages to send. */
export interface Sending extends Making, Outbox {
  limits: SendLimits;
  volume: VolumeLimits;
  /** True if messages from any address are captured, because no mail leaves this machine. */
  capturesAnyFrom: boolean;
}
