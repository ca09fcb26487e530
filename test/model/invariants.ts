import type { Chance } from "../support/chance.ts";
import { agree, membersOf } from "./agree.ts";
import { someProject } from "./choice.ts";
import { checkDeliveries } from "./event-deliveries.ts";
import { listsOf, listsOfAccount } from "./lists.ts";
import { readRecord } from "./records.ts";
import { NEVER } from "./request.ts";
import { projectsOf, statusOf, type World } from "./state.ts";
import { checkStats } from "./stats.ts";
import { walk } from "./walk.ts";

/** Checks after every step. */
export async function checkWorld(world: World, chance: Chance): Promise<void> {
  await checkDeliveries(world);
  await checkRollUp(world);
  if (chance.happens(0.1)) await checkStats(world, chance, someProject(world, chance));
}

/** Checks everything: every figure, every list, every record. */
export async function checkAll(world: World, chance: Chance): Promise<void> {
  for (const project of projectsOf(world)) {
    await checkStats(world, chance, project);
    const lists = [...listsOf(world, NEVER, project), ...listsOf(world, chance, project)];
    for (const list of lists) await walk(world, chance, list, null);
    for (const message of project.messages) await readRecord(world, chance, project, message);
  }
  for (const account of world.accounts)
    for (const list of listsOfAccount(account)) await walk(world, chance, list, null);
}

/** A message's status is derived from its recipients, and the database has exactly the model's messages. */
async function checkRollUp(world: World): Promise<void> {
  const rows = await world.stage.db.all<{ id: string; sender_id: string; status: string }>(
    "SELECT id, sender_id, status FROM messages",
  );
  const messages = projectsOf(world).flatMap((project) =>
    project.messages.map((message) => ({ project, message })),
  );
  agree(rows.length, messages.length, "how many messages there are");
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const { project, message } of messages)
    agree(
      membersOf(byId.get(message.id)),
      { sender_id: project.id, status: statusOf(message) },
      `the status of ${message.id}`,
    );
}
