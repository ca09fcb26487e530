/** The answers of the API about addresses, as far as the dashboard reads them. */

export interface Contact {
  id: string;
  email: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  unsubscribedAt: string | null;
  metadata: Record<string, unknown>;
  createdAt: string;
  updatedAt: string;
}

export interface Suppression {
  id: string;
  email: string;
  reason: "bounce" | "complaint" | "manual";
  bounceType: "hard" | "soft" | null;
  messageId: string | null;
  note: string | null;
  expiresAt: string | null;
  createdAt: string;
}
