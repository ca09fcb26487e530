declare module "html-to-text" {
  interface Selector {
    selector: string;
    format?: string;
    options?: Record<string, unknown>;
  }
  interface Builder {
    addInline(text: string): void;
  }
  interface Element {
    children: readonly unknown[];
  }
  export type Formatter = (
    element: Element,
    walk: (nodes: readonly unknown[], builder: Builder) => void,
    builder: Builder,
  ) => void;
  interface Options {
    wordwrap?: number | false;
    formatters?: Record<string, Formatter>;
    selectors?: Selector[];
    limits?: { maxInputLength?: number; maxChildNodes?: number; maxDepth?: number; ellipsis?: string };
  }
  export function convert(html: string, options?: Options): string;
}
