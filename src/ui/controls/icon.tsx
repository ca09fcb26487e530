/** Lines of each icon on a grid of 16 by 16. */
const PATHS = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z",
  messages: "M2 3.5h12v9H2zM2 4l6 5 6-5",
  live: "M1.5 8h3l2-5 3 10 2-5h3",
  inboxes: "M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 1.5h3l1-1.5H14",
  rules: "M2.5 3.5h7M2.5 8h4M2.5 12.5h4M9.5 10.5H14M12 8.5l2 2-2 2",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1.5 1.5h-11zM6.5 14h3",
  domains: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM2 8h12M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12",
  templates: "M3 2h7l3 3v9H3zM5.5 7.5h5M5.5 10.5h5",
  contacts: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM2.8 13.8c.5-2.6 2.5-4 5.2-4s4.7 1.4 5.2 4",
  segments: "M2 3h12L9.5 8.5V13l-3 1V8.5z",
  topics: "M2.5 2.5h5l6 6-5 5-6-6zM5.3 5.3h.01",
  broadcasts: "M2.5 6v4h2.5l6 3.5v-11L5 6zM13.5 6v4",
  suppressions: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM3.7 3.7l8.6 8.6",
  webhooks: "M5.5 5.5 3 8l2.5 2.5M10.5 5.5 13 8l-2.5 2.5M9 3.5 7 12.5",
  keys: "M10.5 9a3.5 3.5 0 1 0-3.3-2.3L2 12v2h2.5v-1.5H6V11h1.5l1.3-1.3c.5.2 1.1.3 1.7.3zM11 5h.01",
  projects: "M2 2.5h5v5H2zM9 2.5h5v5H9zM2 9.5h5v4H2zM9 9.5h5v4H9z",
  routes: "M2 12.5h3c3 0 3-9 6-9h3M11.5 1l2.5 2.5L11.5 6M8.5 12.5H14M11.5 10l2.5 2.5-2.5 2.5",
  audit: "M3 2h10v12H3zM5.5 5.5h.01M7.5 5.5h3M5.5 8h.01M7.5 8h3M5.5 10.5h.01M7.5 10.5h3",
  settings: "M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 3v3M5.5 10v3",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.6 10.6 14 14",
  plus: "M8 3v10M3 8h10",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5 6.5 12 13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 3.5 5.5 8l4.5 4.5",
  attachment:
    "M12.5 7.5 7.6 12.4a3 3 0 0 1-4.3-4.3l5.5-5.5a2 2 0 0 1 2.9 2.9l-5.3 5.3a1 1 0 0 1-1.4-1.4L9.5 5",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
  help: "M6 6a2 2 0 1 1 3 1.7c-.7.4-1 .8-1 1.6M8 12h.01",
  external: "M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4",
  archive: "M2 3h12v3H2zM3 6v7h10V6M6.5 9h3",
} as const;

export type IconName = keyof typeof PATHS;

/** A picture next to a word, or in a button with a label. Screen readers skip it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
