import type { PushDeps } from "../flows/webhooks/push.ts";
import { SharedPayloads } from "../flows/webhooks/shared-payloads.ts";
import { trimEventLog } from "../flows/live/watch.ts";
import { returnDomains } from "../flows/deliver/return-domain.ts";
import { suspensionLimits } from "../flows/deliver/reputation.ts";
import { JobAdmission, LARGE_MESSAGE_LIMITS, RENDERING_LIMITS } from "../flows/deliver/admission.ts";
import type { CustodyStatus } from "../flows/deliver/outcome.ts";
import { makeBroadcasts } from "../flows/broadcasts/make-messages.ts";
import { carryOutRules } from "../flows/rules/rule-effects.ts";
import { recheckDue } from "../flows/domains/recheck.ts";
import { openRotation } from "../flows/domains/rotate-old.ts";
import { post } from "../net/post.ts";
import { deleteOldAnswers } from "../store/projects/idempotency.ts";
import { certificateChores } from "./certificates.ts";
import { noticeChores } from "./notices.ts";
import type { Services } from "./services.ts";
import { checkingOf, type HttpParts } from "./http.ts";
import { backupChores } from "./store/backups.ts";
import { storageChores } from "./store/storage-chores.ts";
import type { WorkerDeps } from "./workers.ts";
import { webhookGuard } from "./process/own-addresses.ts";

/** Maximum number of domains checked in one turn. */
const DOMAINS_PER_TURN = 50;

/** Maximum number of expired idempotent answers deleted in one turn. */
const ANSWERS_PER_TURN = 500;

/** Share by which a retry delay varies, so that messages that failed together are not retried together. */
const RETRY_JITTER = 0.2;

/** Makes the dependencies of the workers. */
export function workerDeps(services: Services, parts: HttpParts): WorkerDeps {
  const { config, clock, db, queue, instance } = services;
  const verification = checkingOf(parts);
  const recheckDomains = {
    name: "domain-checks",
    turn: async () => void (await recheckDue(verification, DOMAINS_PER_TURN)),
  };
  const forgetAnswers = {
    name: "idempotent-answers",
    turn: async () => void (await deleteOldAnswers(db, clock.now(), ANSWERS_PER_TURN)),
  };
  const forgetNews = { name: "event-log", turn: trimEventLog(services) };
  const { lanes, findDeliveryRoute, custody, waysOf } = parts.outbound;
  const common: Common = { ...services, instanceId: instance.id, random: Math.random };
  return {
    db,
    clock,
    queue,
    config,
    instance,
    transmit: transmitDeps(common, custody),
    findDeliveryRoute,
    waysOf,
    lanes,
    push: pushDeps(common),
    contents: services,
    chores: [
      recheckDomains,
      { name: "dkim-rotation", turn: openRotation(verification) },
      { name: "broadcasts", turn: makeBroadcasts(parts) },
      { name: "rule-effects", turn: carryOutRules(parts) },
      forgetAnswers,
      forgetNews,
      ...storageChores(config, services, services.store),
      ...backupChores(config, services),
      ...certificateChores(services),
      ...noticeChores(services),
    ],
    turnFailures: services.metrics.turnFailures,
  };
}

/** The services of both sending and pushing. */
interface Common extends Services {
  instanceId: string;
  /** Numbers in [0, 1), for jitter. */
  random: () => number;
}

function transmitDeps(common: Common, custody: CustodyStatus): WorkerDeps["transmit"] {
  const { config, metrics } = common;
  const capture = config.delivery === "capture";
  return {
    ...common,
    custody,
    suspension: suspensionLimits(config),
    returnDomain: returnDomains({ ...common, capture }),
    renderingAdmission: new JobAdmission(common.clock, RENDERING_LIMITS),
    largeMessageAdmission: new JobAdmission(common.clock, LARGE_MESSAGE_LIMITS),
    capture,
    meter: metrics.transmit,
    retry: {
      schedule: { delaysSeconds: config.deliveryRetrySeconds, jitter: RETRY_JITTER },
      giveUpMs: config.deliveryGiveUpSeconds * 1000,
    },
  };
}

function pushDeps(common: Common): PushDeps {
  const { config, clock, resolver, metrics, testControls } = common;
  const mayReach = webhookGuard(config, clock);
  return {
    ...common,
    payloads: new SharedPayloads(),
    ...(testControls === null ? {} : { endpointClock: testControls.clock.base }),
    post: (request) => post({ clock, resolver, mayReach }, request),
    meter: metrics.push,
    policy: {
      delaysSeconds: config.webhookRetrySeconds,
      timeoutMs: config.webhookTimeoutSeconds * 1000,
      disableAfterMs: config.webhookDisableAfterSeconds * 1000,
      allowPrivate: config.allowPrivateWebhooks,
    },
  };
}
