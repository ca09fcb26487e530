import type { Clock } from "../../core/time/clock.ts";
import { setBounded } from "../../core/collections.ts";
import { DAY_MS } from "../../core/time/units.ts";

/** Messages and octets that one role mailbox accepts per day. */
export const ROLE_LIMITS = { mails: 20_000, octets: 128 * 1024 * 1024 } as const;
export type RoleLimits = Readonly<Record<keyof typeof ROLE_LIMITS, number>>;
/** Maximum number of role mailboxes whose use is counted. Evicts the least recently used one when full. */
export const MAX_COUNTED_ROLE_MAILBOXES = 10_000;

interface Use {
  mails: number;
  octets: number;
  at: number;
}

/** The use of the role mailboxes within this process. */
export interface RoleVolume {
  /** Returns true if the mailbox accepts one more message now. */
  hasRoom(address: string): boolean;
  /** Counts a message. If the mailbox has no room, counts nothing and returns false. */
  add(address: string, octets: number): boolean;
}

/**
 * Limits what senders may store in role mailboxes, whose addresses are known to everyone. Otherwise a flood of reports
 * could fill the disk. Room comes back evenly over the day.
 */
export function roleVolume(clock: Clock, limits: RoleLimits = ROLE_LIMITS): RoleVolume {
  const uses = new Map<string, Use>();
  const useOf = (address: string): Use => {
    const now = clock.elapsed();
    const before = uses.get(address) ?? { mails: 0, octets: 0, at: now };
    const share = (now - before.at) / DAY_MS;
    return {
      mails: Math.max(0, before.mails - share * limits.mails),
      octets: Math.max(0, before.octets - share * limits.octets),
      at: now,
    };
  };
  const isRoomy = ({ mails, octets }: Use): boolean => mails <= limits.mails - 1 && octets < limits.octets;
  return {
    hasRoom: (address) => isRoomy(useOf(address)),
    add(address, octets) {
      const use = useOf(address);
      if (!isRoomy(use)) return false;
      const taken = { mails: use.mails + 1, octets: use.octets + octets, at: use.at };
      setBounded(uses, address, taken, MAX_COUNTED_ROLE_MAILBOXES);
      return true;
    },
  };
}
