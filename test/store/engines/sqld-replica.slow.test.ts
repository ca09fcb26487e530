import { everyFileOn } from "./every-file.ts";

everyFileOn("sqld-replica");
