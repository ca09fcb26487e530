/**
 * Responses that come later. Whatever handles a request holds all of it until it returns. So it returns a stand-in at once, and
 * the server takes the promise that the stand-in stands for.
 */
export class LaterResponses {
  readonly #coming = new WeakMap<Response, Promise<Response>>();

  /** Returns a response that stands for one that comes later. */
  standIn(coming: Promise<Response>): Response {
    const response = new Response();
    this.#coming.set(response, coming);
    return response;
  }

  /** Returns the promise that a stand-in stands for; null for any other response. */
  comingFor(response: Response): Promise<Response> | null {
    return this.#coming.get(response) ?? null;
  }
}
