/**
 * As much of a browser's document as Preact draws on, for drawing on the server. It keeps no styles: the page's policy allows no
 * style attributes.
 */

/** Elements without an end tag (HTML §13.1.2). */
const VOID: ReadonlySet<string> = new Set(
  "area base br col embed hr img input link meta source track wbr".split(" "),
);
/** Names that differ between properties and HTML. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  className: "class",
  htmlFor: "for",
  defaultValue: "value",
  defaultChecked: "checked",
};

abstract class TreeNode {
  parentNode: DrawnElement | null = null;
  previousSibling: TreeNode | null = null;
  nextSibling: TreeNode | null = null;
  abstract readonly nodeType: number;
  abstract html(): string;

  remove(): void {
    const { parentNode: parent, previousSibling: previous, nextSibling: next } = this;
    if (parent === null) return;
    if (previous === null) parent.firstChild = next;
    else previous.nextSibling = next;
    if (next === null) parent.lastChild = previous;
    else next.previousSibling = previous;
    this.parentNode = this.previousSibling = this.nextSibling = null;
  }
}

class DrawnText extends TreeNode {
  readonly nodeType = 3;
  data: string;
  constructor(data: string) {
    super();
    this.data = data;
  }
  html(): string {
    return escaped(this.data);
  }
}

class DrawnElement extends TreeNode {
  readonly nodeType = 1;
  firstChild: TreeNode | null = null;
  lastChild: TreeNode | null = null;
  readonly ownerDocument = { createElementNS, createTextNode };
  readonly style: Record<string, unknown> = { setProperty() {} };
  readonly attributes = new Map<string, string>();
  readonly namespaceURI: string;
  readonly localName: string;
  constructor(namespace: string, name: string) {
    super();
    this.namespaceURI = namespace;
    this.localName = name;
  }

  setAttribute(name: string, value: unknown): void {
    // The attributes of ARIA have `true` as a word.
    const text = value === true && !name.includes("-") ? "" : String(value);
    this.attributes.set(ATTRIBUTES[name] ?? name, text);
  }

  removeAttribute(name: string): void {
    this.attributes.delete(ATTRIBUTES[name] ?? name);
  }

  addEventListener(): void {}
  removeEventListener(): void {}

  insertBefore(node: TreeNode, next: TreeNode | null): void {
    node.remove();
    const previous = next === null ? this.lastChild : next.previousSibling;
    node.parentNode = this;
    node.nextSibling = next;
    node.previousSibling = previous;
    if (previous === null) this.firstChild = node;
    else previous.nextSibling = node;
    if (next === null) this.lastChild = node;
    else next.previousSibling = node;
  }

  html(): string {
    if (this.localName === "select") this.#select();
    const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
    const start = `<${this.localName}${attributes}>`;
    return VOID.has(this.localName) ? start : `${start}${this.innerHtml()}</${this.localName}>`;
  }

  innerHtml(): string {
    let html = "";
    for (let child = this.firstChild; child !== null; child = child.nextSibling) html += child.html();
    return html;
  }

  /** Marks the chosen option, because a select has no attribute for it. */
  #select(): void {
    const value = this.attributes.get("value");
    this.attributes.delete("value");
    for (let child = this.firstChild; child !== null; child = child.nextSibling)
      if (child instanceof DrawnElement && child.attributes.get("value") === value)
        child.attributes.set("selected", "");
  }
}

function createElementNS(namespace: string, name: string): DrawnElement {
  return new DrawnElement(namespace, name);
}

function createTextNode(data: string): DrawnText {
  return new DrawnText(data);
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return String(text).replace(/[&<>"]/g, (char) => ESCAPES[char] ?? char);
}

/** Something to draw on. */
export interface Canvas {
  /** What Preact takes for an element of a browser. */
  element: Element;
  /** Returns what is drawn as HTML. */
  html(): string;
}

/** Returns an empty element to draw on. */
export function createCanvas(): Canvas {
  const root = new DrawnElement("http://www.w3.org/1999/xhtml", "div");
  return { element: root as unknown as Element, html: () => root.innerHtml() };
}
