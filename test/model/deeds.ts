import * as contacts from "./contacts.ts";
import type { Deed } from "./choice.ts";
import { transmitTurn } from "./deliveries.ts";
import * as domains from "./domains.ts";
import * as emails from "./emails.ts";
import * as engage from "./engage.ts";
import * as inboxes from "./inboxes.ts";
import * as keys from "./keys.ts";
import * as senders from "./senders.ts";
import * as suppressions from "./suppressions.ts";
import * as templates from "./templates.ts";
import * as threads from "./threads.ts";
import { trespass } from "./trespass.ts";
import * as turns from "./turns.ts";
import { pushTurn } from "./pushes.ts";
import { walkList } from "./walk.ts";
import * as webhooks from "./webhooks.ts";

/** All operations in the model's world, with their frequency. */
export const DEEDS: Readonly<Record<string, { weight: number; deed: Deed }>> = {
  makeKey: { weight: 2, deed: keys.makeKey },
  revokeKey: { weight: 1, deed: keys.revokeKey },
  revokeForeignKey: { weight: 1, deed: keys.revokeForeignKey },
  makeSender: { weight: 1, deed: senders.makeSender },
  changeSender: { weight: 3, deed: senders.changeSender },
  readSender: { weight: 1, deed: senders.readSender },
  makeTemplate: { weight: 3, deed: templates.makeTemplate },
  changeTemplate: { weight: 1, deed: templates.changeTemplate },
  readTemplate: { weight: 1, deed: templates.readTemplate },
  dropTemplate: { weight: 1, deed: templates.dropTemplate },
  renderTemplate: { weight: 2, deed: templates.renderTemplate },
  previewTemplate: { weight: 1, deed: templates.previewTemplate },
  makeContact: { weight: 4, deed: contacts.makeContact },
  changeContact: { weight: 2, deed: contacts.changeContact },
  turnContact: { weight: 3, deed: contacts.turnContact },
  readContact: { weight: 1, deed: contacts.readContact },
  dropContact: { weight: 1, deed: contacts.dropContact },
  block: { weight: 6, deed: suppressions.block },
  blockMany: { weight: 2, deed: suppressions.blockMany },
  unblock: { weight: 2, deed: suppressions.unblock },
  time: { weight: 6, deed: turns.time },
  chores: { weight: 2, deed: domains.chores },
  loseHints: { weight: 1, deed: turns.loseHints },
  makeWebhook: { weight: 4, deed: webhooks.makeWebhook },
  changeWebhook: { weight: 3, deed: webhooks.changeWebhook },
  readWebhook: { weight: 1, deed: webhooks.readWebhook },
  dropWebhook: { weight: 1, deed: webhooks.dropWebhook },
  rotateSecret: { weight: 2, deed: webhooks.rotateSecret },
  testWebhook: { weight: 2, deed: webhooks.testWebhook },
  replayDelivery: { weight: 2, deed: webhooks.replayDelivery },
  makeDomain: { weight: 5, deed: domains.makeDomain },
  verifyDomain: { weight: 5, deed: domains.verifyDomain },
  readDomain: { weight: 1, deed: domains.readDomain },
  turnReceiving: { weight: 3, deed: domains.turnReceiving },
  dropDomain: { weight: 1, deed: domains.dropDomain },
  rotateDkim: { weight: 1, deed: domains.rotateDkim },
  makeInbox: { weight: 4, deed: inboxes.makeInbox },
  changeInbox: { weight: 1, deed: inboxes.changeInbox },
  listInboxes: { weight: 1, deed: inboxes.listInboxes },
  dropInbox: { weight: 1, deed: inboxes.dropInbox },
  simulate: { weight: 6, deed: threads.simulate },
  reply: { weight: 4, deed: threads.reply },
  readThread: { weight: 2, deed: threads.readThread },
  send: { weight: 16, deed: emails.send },
  sendMany: { weight: 4, deed: emails.sendMany },
  reschedule: { weight: 4, deed: emails.reschedule },
  cancel: { weight: 3, deed: emails.cancel },
  readEmail: { weight: 4, deed: emails.readEmail },
  transmitTurn: { weight: 8, deed: transmitTurn },
  pushTurn: { weight: 6, deed: pushTurn },
  visit: { weight: 4, deed: engage.visit },
  unsubscribeByLink: { weight: 2, deed: engage.unsubscribeByLink },
  trespass: { weight: 5, deed: trespass },
  walkList: { weight: 12, deed: walkList },
  repeatLater: { weight: 2, deed: turns.repeatLater },
};
