import { everyFileOn } from "./every-file.ts";

everyFileOn("server");
