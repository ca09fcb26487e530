// Entry of the worker thread that makes large transactions.
import { serveWrites } from "../../store/embedded/serve-writes.ts";

serveWrites();
