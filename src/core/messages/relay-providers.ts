/** Providers of relays whose events are taken. */
export const RELAY_PROVIDERS = ["ses", "postmark", "mailgun", "sendgrid"] as const;
export type RelayProviderName = (typeof RELAY_PROVIDERS)[number];
