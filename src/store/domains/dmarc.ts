import type { DmarcMove } from "../../core/domains/dmarc-policies.ts";
import { changesRow, type Db } from "../engine/client.ts";
import type { Domain } from "./domains.ts";

/** Switches whether reports move the DMARC policy of a delegated domain. If they do not, it is `none`. Returns false if the project has no such domain. */
export function setDmarcAuto(db: Db, senderId: string, id: string, auto: boolean): Promise<boolean> {
  return changesRow(
    db,
    `UPDATE domains SET dmarc_auto = ?1, dmarc_policy = iif(?1, dmarc_policy, 'none')
      WHERE sender_id = ?2 AND id = ?3 AND delegated = 1`,
    [Number(auto), senderId, id],
  );
}

/** Maximum number of moves that a domain shows. */
const MAX_MOVES = 20;

/** Moves the DMARC policy of a domain. Returns false if it has been moved or switched since it was read. */
export function moveDmarcPolicy(db: Db, before: Domain, move: DmarcMove): Promise<boolean> {
  return changesRow(
    db,
    `UPDATE domains SET dmarc_policy = ?, dmarc_moves = ?
      WHERE sender_id = ? AND id = ? AND dmarc_auto = 1 AND dmarc_policy = ? AND dmarc_moves = ?`,
    [
      move.to,
      JSON.stringify([move, ...before.dmarcMoves].slice(0, MAX_MOVES)),
      before.senderId,
      before.id,
      move.from,
      JSON.stringify(before.dmarcMoves),
    ],
  );
}
