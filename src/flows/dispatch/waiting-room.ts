/** How much room a project may take for each place that it leaves to others, and how much of it for low priority. */
const PROJECT_SHARE = 4;
const LOW_SHARE = 2;

/** Counts the messages that wait, in all and by project. */
export class WaitingRoom {
  readonly #limit: () => number;
  readonly #byProject = new Map<string, number>();
  #waiting = 0;

  /** @param limit returns the maximum number that may wait */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  add(senderId: string): void {
    this.#waiting++;
    this.#byProject.set(senderId, (this.#byProject.get(senderId) ?? 0) + 1);
  }

  remove(senderId: string): void {
    this.#waiting--;
    const left = (this.#byProject.get(senderId) ?? 0) - 1;
    if (left > 0) this.#byProject.set(senderId, left);
    else this.#byProject.delete(senderId);
  }

  /**
   * Returns whether one more message finds room, if that number of its project, domain and priority wait. Each of these
   * may take a share of the room that is left. A project may take all but a fifth of the room, and with low priority all but
   * a third. So another project finds room, and so do messages of high priority if those of low priority have filled theirs.
   */
  hasRoom(senderId: string, size: number, low: boolean): boolean {
    const left = this.#limit() - this.#waiting;
    const share = low ? LOW_SHARE : PROJECT_SHARE;
    return size < left / (low ? 4 : 2) && (this.#byProject.get(senderId) ?? 0) < left * share;
  }
}
