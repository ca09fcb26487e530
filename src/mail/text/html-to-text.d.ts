declare module "html-to-text" {
  interface Selector {
    selector: string;
    format?: string;
    options?: Record<string, unknown>;
  }
  interface Builder {
    addInline(text: string, options?: { noWordTransform?: boolean }): void;
    openBlock(options: { leadingLineBreaks: number }): void;
    closeBlock(options: { trailingLineBreaks: number }): void;
  }
  export interface Node {
    type: string;
    data?: string;
  }
  interface Element {
    attribs?: Readonly<Record<string, string>>;
    children: readonly Node[];
  }
  export type Formatter = (
    element: Element,
    walk: (nodes: readonly Node[], builder: Builder) => void,
    builder: Builder,
  ) => void;
  interface Options {
    wordwrap?: number | false;
    formatters?: Record<string, Formatter>;
    selectors?: Selector[];
    limits?: { maxInputLength?: number; maxChildNodes?: number; maxDepth?: number; ellipsis?: string };
  }
  export function convert(html: string, options?: Options): string;
  export function compile(options?: Options): (html: string) => string;
}
