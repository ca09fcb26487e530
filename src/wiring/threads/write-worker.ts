// Entry of the thread that makes large transactions.
import { serveWrites } from "../../store/engine/serve-writes.ts";

serveWrites();
