import {
  AssertionError,
  Output,
  type Template,
  toValueSync,
  TypeGuards,
  Value,
  type ValueToken,
  Variable,
} from "liquidjs";

/** A variable that a template reads from its data. In `a[b.c]`, `b.c` is a separate variable. */
export interface TemplateVariable {
  /** Full path as shown: `user.name`. */
  name: string;
  variable: Variable;
}

type PropertyAccess = Extract<ValueToken, { props: unknown }>;

interface Use {
  variable: Variable;
  begin: number;
}

/**
 * Paths nested in brackets. The name of each variable contains the variables in it, so the work grows with the third
 * power of the depth. An 8 KB template would block the thread for seconds.
 */
export const MAX_PATHS_WITHIN = 20;

/**
 * Replaces the line and column of a variable, which nothing reads. The library would scan from the start to find
 * them.
 */
const NOWHERE = { row: 0, col: 0 };

/**
 * Returns the variables that a parsed template reads from its data, in order of first use. Names that its own tags
 * make do not count.
 * @throws AssertionError if paths are nested too deep
 */
export function variablesOf(templates: readonly Template[]): TemplateVariable[] {
  const uses: Use[] = [];
  visit(templates, { made: new Set(), blocks: [] }, uses);
  uses.sort((a, b) => a.begin - b.begin);
  const found = new Map<string, TemplateVariable>();
  for (const { variable } of uses) {
    const name = variable.toString();
    if (!found.has(name)) found.set(name, { name, variable });
  }
  return [...found.values()];
}

interface Scope {
  /** Names made by `assign`, `capture` and counters. They are known until the template ends. */
  made: Set<string>;
  /** Names known within the surrounding blocks, such as a loop's variable. */
  blocks: readonly ReadonlySet<string>[];
}

function visit(templates: readonly Template[], scope: Scope, uses: Use[]): void {
  for (const template of templates) {
    refuseStrayValues(template);
    for (const argument of template.arguments?.() ?? [])
      for (const token of tokensOf(argument)) note(token, scope, uses);
    for (const name of template.localScope?.() ?? []) scope.made.add(name.content);
    if (template.children === undefined) continue;
    const own = template.blockScope === undefined ? [] : [new Set(template.blockScope())];
    const children: readonly Template[] = toValueSync(template.children(false, true));
    visit(children, { ...scope, blocks: [...scope.blocks, ...own] }, uses);
  }
}

/**
 * Refuses a placeholder of several values, such as `{{ first name }}`. Liquid takes the last one and ignores the
 * others, so the author would not see the mistake.
 * @throws AssertionError
 */
function refuseStrayValues(template: Template): void {
  if (!(template instanceof Output)) return;
  const { postfix } = template.value.initial;
  const operators = postfix.filter((token) => TypeGuards.isOperatorToken(token) && token.operator !== "not");
  const negations = postfix.filter((token) => TypeGuards.isOperatorToken(token) && token.operator === "not");
  if (postfix.length - negations.length - 2 * operators.length === 1) return;
  const names = postfix.map((token) => token.getText()).join(" ");
  throw new AssertionError(`"{{ ${names} }}" has several values without an operator between them`);
}

/**
 * Refuses a path that begins or ends with a dot, such as `{{ user.name. }}`. Liquid ignores the dot, so the author would
 * not see that a name is missing.
 * @throws AssertionError
 */
function refuseStrayDot(token: PropertyAccess): void {
  const path = token.getText();
  if (path.startsWith(".") || path.endsWith("."))
    throw new AssertionError(`"${path}" has a dot without a name beside it`);
}

/** Adds the variable and those nested in it, unless the template itself made them. */
function note(token: PropertyAccess, scope: Scope, uses: Use[], within = 0): void {
  if (within > MAX_PATHS_WITHIN)
    throw new AssertionError(`paths are nested more than ${MAX_PATHS_WITHIN} deep`);
  refuseStrayDot(token);
  for (const prop of token.props)
    if (TypeGuards.isPropertyAccessToken(prop)) note(prop, scope, uses, within + 1);
  const variable = variableOf(token);
  const root = variable.segments[0];
  if (typeof root !== "string") return;
  if (scope.made.has(root) || scope.blocks.some((names) => names.has(root))) return;
  uses.push({ variable, begin: token.begin });
}

function variableOf({ props }: PropertyAccess): Variable {
  const segments: (string | number | Variable)[] = [];
  for (const [index, prop] of props.entries()) {
    if (TypeGuards.isPropertyAccessToken(prop)) {
      const inner = variableOf(prop);
      // A path may begin with a path in brackets: `[a.b].c`.
      if (index === 0) segments.push(...inner.segments);
      else segments.push(inner);
    } else if (
      TypeGuards.isWordToken(prop) ||
      TypeGuards.isQuotedToken(prop) ||
      TypeGuards.isNumberToken(prop)
    )
      segments.push(index > 0 && isIndex(prop) ? Number(prop.content) : prop.content);
  }
  return new Variable(segments, NOWHERE);
}

/** Returns whether a word is the place of an item: `a.0.b` is the path `a[0].b`. */
function isIndex(prop: PropertyAccess["props"][number]): boolean {
  return TypeGuards.isWordToken(prop) && /^(?:0|[1-9]\d{0,8})$/.test(prop.content);
}

/** Yields the property accesses in an argument of a tag or a placeholder. */
function* tokensOf(argument: unknown): Generator<PropertyAccess> {
  if (argument instanceof Value) yield* valueTokens(argument);
  else if (TypeGuards.isRangeToken(argument)) {
    yield* tokensOf(argument.lhs);
    yield* tokensOf(argument.rhs);
  } else if (TypeGuards.isFilteredValueToken(argument)) yield* valueTokens(argument);
  else if (TypeGuards.isPropertyAccessToken(argument)) yield argument;
}

type Filtered = Pick<Value, "initial"> & { filters: readonly { args: readonly unknown[] }[] };

function* valueTokens({ initial, filters }: Filtered): Generator<PropertyAccess> {
  for (const token of initial.postfix) yield* tokensOf(token);
  // A named argument is a pair of name and value.
  for (const { args } of filters) for (const arg of args) yield* tokensOf(Array.isArray(arg) ? arg[1] : arg);
}
