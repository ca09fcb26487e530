// Entry of the thread that makes large transactions.
import { serveWrites } from "../../store/embedded/serve-writes.ts";

serveWrites();
