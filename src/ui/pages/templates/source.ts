import type { Signal } from "@preact/signals";

/** The parts of a template that is being written. */
export interface Source {
  name: Signal<string>;
  subject: Signal<string>;
  html: Signal<string>;
  text: Signal<string>;
  /** JSON that fills the preview. */
  data: Signal<string>;
}
