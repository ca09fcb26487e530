import { Glob } from "bun";
import {
  isCallExpression,
  isExportDeclaration,
  isImportDeclaration,
  isImportTypeNode,
  isLiteralTypeNode,
  isNamedImports,
  isStringLiteral,
  type Node,
  type SourceFile,
  SyntaxKind,
} from "typescript/unstable/ast";
import { API } from "typescript/unstable/async";
import { createVirtualFileSystem } from "typescript/unstable/fs";

/** One import, re-export, `import()` or import type of a file. */
export interface ImportFact {
  specifier: string;
  /** True if compilation removes it: `import type`, or only `type` names. */
  typeOnly: boolean;
  line: number;
}

/** One source file, parsed. */
export interface Source {
  /** From the root of the repository: `src/core/ids.ts`. */
  path: string;
  text: string;
  tree: SourceFile;
  imports: readonly ImportFact[];
}

const CONFIG = "/code/tsconfig.json";

/** Reads every matching file. Returns sources by path from `root`. */
export async function readFiles(root: string, pattern: string): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for await (const path of new Glob(pattern).scan({ cwd: root }))
    texts[path] = await Bun.file(`${root}/${path}`).text();
  return texts;
}

/** Parses files given as sources by path, without reading their imports. */
export async function parseFiles(texts: Readonly<Record<string, string>>): Promise<Source[]> {
  const paths = Object.keys(texts).sort();
  const files: Record<string, string> = {
    [CONFIG]: JSON.stringify({
      compilerOptions: {
        noLib: true,
        noResolve: true,
        types: [],
        allowImportingTsExtensions: true,
        noEmit: true,
      },
      files: paths,
    }),
  };
  for (const path of paths) files[`/code/${path}`] = texts[path] ?? "";
  const api = new API({ cwd: "/code", fs: createVirtualFileSystem(files) });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [CONFIG] });
    const program = snapshot.getProject(CONFIG)?.program;
    const sources: Source[] = [];
    for (const path of paths) {
      const tree = await program?.getSourceFile(`/code/${path}`);
      if (tree === undefined) throw new Error(`${path} was not parsed`);
      sources.push({ path, text: texts[path] ?? "", tree, imports: importsOf(tree) });
    }
    return sources;
  } finally {
    await api.close();
  }
}

/** Line of a node, counted from 1. */
export function lineOf(node: Node): number {
  const tree = node.getSourceFile();
  return tree.text.slice(0, node.getStart(tree)).split("\n").length;
}

/** Calls `visit` for the node and everything below it. */
export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  node.forEachChild((child) => walk(child, visit));
}

function importsOf(tree: SourceFile): ImportFact[] {
  const facts: ImportFact[] = [];
  walk(tree, (node) => {
    const target = specifierOf(node);
    if (target !== undefined && isStringLiteral(target))
      facts.push({ specifier: target.text, typeOnly: isTypeOnly(node), line: lineOf(node) });
  });
  return facts;
}

function specifierOf(node: Node): Node | undefined {
  if (isImportDeclaration(node) || isExportDeclaration(node)) return node.moduleSpecifier;
  if (isImportTypeNode(node) && isLiteralTypeNode(node.argument)) return node.argument.literal;
  if (isCallExpression(node) && /^(import|require)$/.test(node.expression.getText()))
    return node.arguments[0];
  return undefined;
}

function isTypeOnly(node: Node): boolean {
  if (isExportDeclaration(node)) return node.isTypeOnly;
  if (!isImportDeclaration(node)) return isImportTypeNode(node);
  const clause = node.importClause;
  if (clause === undefined) return false;
  if (clause.phaseModifier === SyntaxKind.TypeKeyword) return true;
  const bindings = clause.namedBindings;
  if (clause.name !== undefined || bindings === undefined || !isNamedImports(bindings)) return false;
  return bindings.elements.length > 0 && bindings.elements.every((element) => element.isTypeOnly);
}
