import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { after } from "../browser/clock.ts";
import { readChoice, storeChoice } from "./storage.ts";

/** The list that `j`, `k` and Enter move in: the one that appeared last. */
export interface MovableList {
  move(step: 1 | -1): void;
}

export interface Shortcut {
  keys: string;
  does: string;
}

/** After `g`, the second key must follow within this time. */
const SEQUENCE_MS = 1_200;

const lists: MovableList[] = [];
const actions = new Map<string, (() => void)[]>();
let started: string | null = null;
let cancelStarted = () => {};

/** Single keys can be turned off, because speech input may type them by accident (WCAG 2.1.4). */
export const singleKeys = signal(true);

/** Begins to listen to the keyboard. */
export function startKeyboard(): void {
  singleKeys.value = readChoice("keys") !== "off";
  document.addEventListener("keydown", onKey);
}

/** Turns single-key shortcuts on or off. */
export function chooseSingleKeys(on: boolean): void {
  singleKeys.value = on;
  storeChoice("keys", on ? "on" : "off");
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    !(target instanceof HTMLInputElement && target.type === "checkbox") &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  // A dialog handles its own keys.
  if (document.querySelector("dialog[open]") !== null) return;
  if (event.key === "Escape") onEscape(event);
  else if (!isTyping(event.target) && singleKeys.peek()) onSingleKey(event);
}

function onSingleKey(event: KeyboardEvent): void {
  const key = started === null ? event.key : `${started} ${event.key}`;
  endSequence();
  if (event.key === "g" && key === "g") beginSequence("g");
  else if (run(key)) event.preventDefault();
}

function onEscape(event: KeyboardEvent): void {
  if (isTyping(event.target)) (event.target as HTMLElement).blur();
  else run("Escape");
}

function beginSequence(key: string): void {
  started = key;
  cancelStarted = after(SEQUENCE_MS, endSequence);
}

function endSequence(): void {
  cancelStarted();
  started = null;
}

function run(key: string): boolean {
  const list = lists.at(-1);
  if (key === "j" || key === "k") {
    list?.move(key === "j" ? 1 : -1);
    return list !== undefined;
  }
  const action = actions.get(key)?.at(-1);
  action?.();
  return action !== undefined;
}

/** Runs a function at a key, such as `?` or `g m`, while the component is there. The newest component wins. */
export function useKey(key: string, action: () => void): void {
  const latest = useRef(action);
  latest.current = action;
  useEffect(() => {
    const stable = () => latest.current();
    const known = actions.get(key) ?? [];
    actions.set(key, [...known, stable]);
    return () => {
      actions.set(
        key,
        (actions.get(key) ?? []).filter((one) => one !== stable),
      );
    };
  }, [key]);
}

/** Makes a list the one that `j` and `k` move in, while the component is there. */
export function useMovable(list: MovableList): void {
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    const stable: MovableList = { move: (step) => latest.current.move(step) };
    lists.push(stable);
    return () => {
      lists.splice(lists.indexOf(stable), 1);
    };
  }, []);
}
