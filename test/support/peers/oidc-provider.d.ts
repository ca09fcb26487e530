declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  /** The part of the package that tests use. */
  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): RequestListener;
  }
}
