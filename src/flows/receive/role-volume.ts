import type { Clock } from "../../core/clock.ts";
import { setNewest } from "../../core/newest.ts";
import { DAY_MS } from "../../core/time-units.ts";

/** What one role mailbox takes a day: mails, and octets of them. */
export const ROLE_LIMITS = { mails: 20_000, octets: 128 * 1024 * 1024 } as const;
export type RoleLimits = Readonly<Record<keyof typeof ROLE_LIMITS, number>>;
/** Role mailboxes whose use is remembered; of the one unused for longest it is forgotten first. */
export const MAX_COUNTED_ROLE_MAILBOXES = 10_000;

interface Use {
  mails: number;
  octets: number;
  at: number;
}

/** How much the role mailboxes have taken. It holds within this process. */
export interface RoleVolume {
  /** Whether the mailbox takes one more mail now. */
  hasRoom(address: string): boolean;
  /** Counts a mail. False, and nothing is counted, where the mailbox has no room. */
  take(address: string, octets: number): boolean;
}

/**
 * Bounds what strangers may store at addresses that anybody can know and nobody need have made: a flood of reports, real
 * ones or not, must not fill the disk. Room comes back evenly over the day.
 */
export function roleVolume(clock: Clock, limits: RoleLimits = ROLE_LIMITS): RoleVolume {
  const uses = new Map<string, Use>();
  const useOf = (address: string): Use => {
    const now = clock.now();
    const before = uses.get(address) ?? { mails: 0, octets: 0, at: now };
    // A clock put back gives nothing and takes nothing away; from then on room comes back.
    before.at = Math.min(before.at, now);
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
    take(address, octets) {
      const use = useOf(address);
      if (!isRoomy(use)) return false;
      const taken = { mails: use.mails + 1, octets: use.octets + octets, at: use.at };
      setNewest(uses, address, taken, MAX_COUNTED_ROLE_MAILBOXES);
      return true;
    },
  };
}
