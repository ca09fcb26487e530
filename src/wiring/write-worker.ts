// Entry of the thread that makes large transactions.
import { systemClock } from "../clock.ts";
import { serveWrites } from "../store/engine/serve-writes.ts";

serveWrites(systemClock);
