/** A style that the bundler takes into the dashboard's style file. */
declare module "*.css";
