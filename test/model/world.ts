import { newId } from "../../src/core/ids.ts";
import { hashSecret, keyFor, newApiSecret } from "../../src/flows/account/api-keys.ts";
import { insertKey } from "../../src/store/projects/keys.ts";
import { chanceOf } from "../support/chance.ts";
import { testSender } from "../support/api.ts";
import { insertProject } from "../../src/store/projects/projects.ts";
import { registerVerified } from "./domains.ts";
import { emptyProject } from "./senders.ts";
import { openStage, OWNERS, type Stage } from "./stage.ts";
import type { Account, World } from "./state.ts";

/** A service with two accounts of two projects each, one of which can send, and the model of it. */
export async function openWorld(seed: number): Promise<World> {
  const stage = await openStage(chanceOf(seed ^ 0x5eed));
  let count = 0;
  const accounts: World["accounts"] = [
    await putAccount(stage, OWNERS[0]),
    await putAccount(stage, OWNERS[1]),
  ];
  const world: World = {
    stage,
    accounts,
    kept: [],
    seen: { event: "", delivery: "" },
    trace: [],
    next: () => ++count,
  };
  const [favoured] = accounts[0].projects;
  if (favoured !== undefined) await registerVerified(world, favoured, "favoured.example.net");
  return world;
}

/**
 * The service makes accounts only at its first start, so the test inserts them, with the first key and projects.
 */
async function putAccount({ db, clock }: Stage, owner: string): Promise<Account> {
  const now = clock.now();
  const id = newId("acc", now);
  const account: Account = { id, owner, keys: [], projects: [] };
  const sql = "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, ?, ?, ?)";
  await db.write([{ sql, args: [id, owner, owner, now] }]);
  for (const name of ["first", "second"]) {
    const sender = testSender(id, name, now);
    await db.write([insertProject(sender)]);
    account.projects.push(emptyProject(account, sender));
  }
  for (const project of [null, ...account.projects]) {
    const secret = newApiSecret();
    const names = { senderId: project?.id ?? null, senderExternalId: project?.externalId ?? null };
    const key = keyFor(secret, { accountId: id, name: "first", scopes: [], ...names }, now);
    await db.write([insertKey(key, hashSecret(secret))]);
    account.keys.push({
      id: key.id,
      secret,
      name: "first",
      project,
      scopes: [],
      revokedAt: null,
      createdAt: now,
    });
  }
  return account;
}
