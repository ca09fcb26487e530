// The server imports this file, because its type check knows no browser. Types: index.d.ts.
export { draw } from "./draw.tsx";
