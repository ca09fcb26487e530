/**
 * Responses that come later. A handler holds its whole request in memory until it returns. So it returns a stand-in
 * at once, and the server takes the promise behind the stand-in.
 */
export class LaterResponses {
  readonly #coming = new WeakMap<Response, Promise<Response>>();

  /** Returns a placeholder for a response that comes later. */
  standIn(coming: Promise<Response>): Response {
    const response = new Response();
    this.#coming.set(response, coming);
    return response;
  }

  /** Returns the promise that a stand-in represents; null for any other response. */
  comingFor(response: Response): Promise<Response> | null {
    return this.#coming.get(response) ?? null;
  }
}
