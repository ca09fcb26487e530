// The entry of the bundle that draws pages. Types: index.d.ts.
export { draw } from "./draw.tsx";
