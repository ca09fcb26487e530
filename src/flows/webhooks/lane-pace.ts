/** A lane as its pace sees it. */
export interface PacedLane {
  readonly project: string;
  /** Running jobs of the lane. */
  readonly running: number;
}

interface Project<Lane> {
  name: string;
  running: number;
  /**
   * Lanes with a job and room for it, in the order of their turns: with fewer running jobs than each lane may have,
   * and with more.
   */
  few: Set<Lane>;
  many: Set<Lane>;
}

/** Share of a project's room that lanes with many jobs may take. The rest is for its other lanes. */
const GROWN_SHARE = 1 / 2;

/**
 * Lanes of one pace, and the limit of jobs that they share. Projects take turns, and so do the lanes of a project.
 * A project starts a job only if fewer of its jobs run than may still be started, so the next project always finds
 * room.
 */
export class LanePace<Lane extends PacedLane> {
  /** Number of running jobs at which no more are started. */
  readonly #total: number;
  /** Maximum number of running jobs per lane. */
  readonly #perLane: number;
  readonly #projects = new Map<string, Project<Lane>>();
  /** Projects with lanes in `few` or `many`, in the order of their turns. */
  readonly #turns = new Set<Project<Lane>>();
  #running = 0;

  constructor(total: number, perLane: number) {
    this.#total = total;
    this.#perLane = perLane;
  }

  get running(): number {
    return this.#running;
  }

  /** Gives the lane a turn. It must have a job and room for it. */
  add(lane: Lane): void {
    const project = this.#projectOf(lane);
    const [own, other] =
      lane.running < this.#perLane ? (["few", "many"] as const) : (["many", "few"] as const);
    project[other].delete(lane);
    project[own].add(lane);
    this.#turns.add(project);
  }

  /** Takes the lane's turn away. */
  remove(lane: Lane): void {
    const project = this.#projectOf(lane);
    project.few.delete(lane);
    project.many.delete(lane);
    this.#tidy(project);
  }

  /** Adds to the lane's count of running jobs, or subtracts if negative. */
  count(lane: Lane, jobs: number): void {
    const project = this.#projectOf(lane);
    project.running += jobs;
    this.#running += jobs;
    this.#tidy(project);
  }

  /** Returns the lane whose turn it is, and ends its turn. Returns null if no lane may start a job now. */
  next(): Lane | null {
    if (this.#running >= this.#total) return null;
    for (const project of this.#turns) {
      const lane = this.#firstOf(project);
      if (lane === undefined) continue;
      this.#turns.delete(project);
      this.#turns.add(project);
      this.remove(lane);
      return lane;
    }
    return null;
  }

  #firstOf({ running, few, many }: Project<Lane>): Lane | undefined {
    const free = this.#total - this.#running;
    const [first] = few;
    if (first !== undefined && running < free) return first;
    const [grown] = many;
    return running < free * GROWN_SHARE ? grown : undefined;
  }

  #projectOf({ project: name }: Lane): Project<Lane> {
    const project = this.#projects.get(name) ?? { name, running: 0, few: new Set(), many: new Set() };
    this.#projects.set(name, project);
    return project;
  }

  #tidy(project: Project<Lane>): void {
    if (project.few.size + project.many.size > 0) return;
    this.#turns.delete(project);
    if (project.running === 0) this.#projects.delete(project.name);
  }
}
