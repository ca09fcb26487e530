declare module "html-to-text" {
  interface Selector {
    selector: string;
    format?: string;
    options?: Record<string, unknown>;
  }
  interface Options {
    wordwrap?: number | false;
    selectors?: Selector[];
    limits?: { maxInputLength?: number; maxChildNodes?: number; maxDepth?: number; ellipsis?: string };
  }
  export function convert(html: string, options?: Options): string;
}
